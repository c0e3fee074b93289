/** `qanat serve --pin`: how much memory it may take, and what a person sees while files are read into it. */
import type { ServeOptions } from '../../storage-server/index.ts';
import type { OptionValues } from '../options.ts';
import { canShowProgress, showProgress } from '../output/progress.ts';
import { PIN_MEMORY_SHARE } from './limits.ts';

interface StartedPinning {
  readonly pin: NonNullable<ServeOptions['pin']>;
  /** Ends what shows the progress. */
  readonly hide: () => void;
}

/** Undefined when nothing is to be pinned. */
export function startPinning({ pin }: OptionValues, signal: AbortSignal): StartedPinning | undefined {
  if (pin === undefined) return undefined;
  const budgetBytes = pin === 'auto' ? Math.floor(process.availableMemory() * PIN_MEMORY_SHARE) : pin;
  let bytes = 0;
  let bytesTotal = 0;
  const hide = showProgress('pin', canShowProgress(false), () => ({ bytes, bytesTotal }));
  const onProgress = (done: number, total: number): void => {
    bytes = done;
    bytesTotal = total;
  };
  return {
    pin: { budgetBytes, onProgress, signal },
    hide,
  };
}
