import { on, once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

const HOST = '127.0.0.1';

/** What becomes of the server's bytes on their way to the client. */
type Fault =
  | { readonly kind: 'none' }
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'silence' }
  | { readonly kind: 'cut' };

/** Stands between an instance and its Redis, and does to their connections what a network can do. */
export class TcpProxy {
  readonly #server: Server;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  #fault: Fault = { kind: 'none' };

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.#target = target;
    server.on('connection', (client) => this.#join(client));
  }

  static async open(target: number): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server, target);
    server.listen(0, HOST);
    await once(server, 'listening');
    return proxy;
  }

  get url(): string {
    const address = this.#server.address();
    return `redis://${HOST}:${typeof address === 'object' && address !== null ? address.port : 0}`;
  }

  heal(): void {
    this.#fault = { kind: 'none' };
  }

  /** Replies come so much later. */
  delay(ms: number): void {
    this.#fault = { kind: 'delay', ms };
  }

  /** Nothing gets through any more, in either direction, and nobody is told. */
  silence(): void {
    this.#fault = { kind: 'silence' };
  }

  /** Of the next reply of each connection half gets through; then the connection is reset. */
  cutReplies(): void {
    this.#fault = { kind: 'cut' };
  }

  /** So many have connected since now, and have spoken. */
  async joined(count: number): Promise<void> {
    const clients = on(this.#server, 'connection');
    for (let i = 0; i < count; i++) {
      const { value } = (await clients.next()) as { value: [Socket] };
      await once(value[0], 'data');
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(client: Socket): void {
    const server = connect(this.#target, HOST);
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    client.on('data', (bytes) => {
      if (this.#fault.kind !== 'silence') server.write(bytes);
    });
    server.on('data', (bytes) => this.#reply(client, bytes));
  }

  #reply(client: Socket, bytes: Buffer): void {
    const fault = this.#fault;
    if (fault.kind === 'silence') return;
    if (fault.kind === 'delay') setTimeout(() => client.write(bytes), fault.ms);
    else if (fault.kind === 'none') client.write(bytes);
    else client.write(bytes.subarray(0, Math.ceil(bytes.length / 2)), () => client.resetAndDestroy());
  }
}
