// In specs that touch Nest, Nest must be there before a CJS package requires it: jest refuses a cycle through
// a require() of ES modules. Elsewhere it would only cost time.
if (/\/test\/(e2e|observability|unit\/nest)\//.test(expect.getState().testPath)) {
  await import('reflect-metadata');
  await import('@nestjs/common');
  await import('@nestjs/core');
}
