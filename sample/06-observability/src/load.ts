import { setTimeout as sleep } from 'node:timers/promises';

const EVERY_MS = 20;
const CUSTOMERS = 20;

/** Customers that browse and order, and one that does nothing else. Ends with the signal. */
export async function sendLoad(url: string, signal: AbortSignal): Promise<void> {
  for (let i = 0; !signal.aborted; i++) {
    const customer = i % 4 === 0 ? 'eager' : `customer-${Math.floor(Math.random() * CUSTOMERS)}`;
    const isOrder = i % 3 === 0;
    const path = isOrder ? '/shop/orders' : `/shop/article-${i % 1_000}`;
    const headers = { 'x-customer': customer };
    await fetch(url + path, { method: isOrder ? 'POST' : 'GET', headers })
      .then((response) => response.arrayBuffer())
      .catch(() => {});
    await sleep(EVERY_MS, undefined, { signal, ref: false }).catch(() => {});
  }
}
