const ARRAY_32 = 0xdd;
const UINT_16 = 0xcd;
const FLOAT_64 = 0xcb;
const HEADER_BYTES = 5;
/** The most that one number takes. */
const NUMBER_BYTES = 9;

/** Packs numbers into one MessagePack array, which Redis unpacks in one call of C. */
export class NumberPacker {
  #bytes = Buffer.allocUnsafe(1_024);
  #length = HEADER_BYTES;
  #count = 0;

  put(number: number): void {
    if (this.#length + NUMBER_BYTES > this.#bytes.length) this.#grow();
    const bytes = this.#bytes;
    this.#count++;
    if (Number.isInteger(number) && number >= 0 && number < 0x1_0000) {
      if (number < 0x80) {
        bytes[this.#length++] = number;
      } else {
        bytes[this.#length++] = UINT_16;
        this.#length = bytes.writeUInt16BE(number, this.#length);
      }
    } else {
      bytes[this.#length++] = FLOAT_64;
      this.#length = bytes.writeDoubleBE(number, this.#length);
    }
  }

  /** Adds all that another packer holds. */
  append(other: NumberPacker): void {
    while (this.#length + other.#length > this.#bytes.length) this.#grow();
    other.#bytes.copy(this.#bytes, this.#length, HEADER_BYTES, other.#length);
    this.#length += other.#length - HEADER_BYTES;
    this.#count += other.#count;
  }

  /** The array so far, as bytes of its own; then begins afresh. */
  take(): Buffer {
    this.#bytes[0] = ARRAY_32;
    this.#bytes.writeUInt32BE(this.#count, 1);
    const taken = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.clear();
    return taken;
  }

  clear(): void {
    this.#length = HEADER_BYTES;
    this.#count = 0;
  }

  #grow(): void {
    const grown = Buffer.allocUnsafe(2 * this.#bytes.length);
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
