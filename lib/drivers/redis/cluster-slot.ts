/** How many hash slots a Redis cluster has. */
const SLOTS = 16_384;
const POLYNOMIAL = 0x1021;

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc;
});

/**
 * The slot of a key with this hash tag.
 * Source: Redis cluster specification, CRC16 (XMODEM) modulo 16384.
 */
export function clusterSlot(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag, 'utf8'))
    crc = ((crc << 8) ^ TABLE[((crc >> 8) ^ byte) & 0xff]!) & 0xffff;
  return crc % SLOTS;
}
