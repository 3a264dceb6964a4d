/** The text of one key: 15 characters, `user:0000000042`. Built by template, as applications build theirs. */
export function keyText(number) {
  return `user:${String(number).padStart(10, '0')}`;
}

/** Keys made before anything is measured. Each is one flat string, so that no contestant pays for flattening it. */
export function premadeKeys(count) {
  return Array.from({ length: count }, (_, i) => Buffer.from(keyText(i), 'latin1').toString('latin1'));
}

/** The indexes of `length` visits in random order. */
export function randomVisits(length, count) {
  const visits = new Uint32Array(length);
  for (let i = 0; i < length; i++) visits[i] = Math.floor(Math.random() * count);
  return visits;
}
