/* A file for each kubelet, so that two run at the same time: they mostly wait. */
import { tryPairsOf } from './scenario.ts';

tryPairsOf('1.28');
