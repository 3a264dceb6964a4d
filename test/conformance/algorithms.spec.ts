import { describeAlgorithm } from 'nestjs-distlimit/testing';
import { ALGORITHMS } from '../../lib/algorithms/index.js';

for (const algorithm of Object.values(ALGORITHMS)) describeAlgorithm(algorithm);
