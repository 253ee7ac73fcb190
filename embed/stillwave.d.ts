/** A part of a recording, in seconds. */
export interface Span { start: number; end: number }

/** Why a recording can't be shown. */
export interface StillwaveError extends Error {
  /** The code of the service's problem, or `unreachable`, `unplayable`, `invalid_recording`, `waveform_failed`. */
  readonly code: string;
  /** The status of the response, 0 if there is none. */
  readonly status: number;
}

/** A recording's waveform to see, hear, zoom and select in. */
export declare class StillwaveWaveform extends HTMLElement {
  /** What the element says. Change it before elements are made. */
  static texts: {
    waveform: string; play: string; pause: string; in: string; out: string; all: string; required: string; unplayable: string;
    position(at: string, all: string): string;
    selected(from: string, to: string): string;
  };
  /** The Recording as the service describes it; null until it is known. */
  readonly info: Record<string, unknown> | null;
  readonly error: StillwaveError | null;
  /** Seconds; NaN until it is known. */
  readonly duration: number;
  readonly paused: boolean;
  currentTime: number;
  get selection(): Span | null;
  set selection(span: Span | null);
  /** What is seen. */
  get visible(): Span;
  set visible(span: Span);
  /** Plays from the playhead, or the selection. Rejects as `HTMLMediaElement.play` does. */
  play(): Promise<void>;
  pause(): void;
  /** Makes what is seen `factor` times as long, around the instant `at` or the selection. */
  zoom(factor: number, at?: number): void;
  showAll(): void;
  /** What plays; for `volume` and `playbackRate`. */
  readonly media: HTMLAudioElement;
  readonly form: HTMLFormElement | null;
  readonly type: string;
  name: string;
  /** The selection as `start-end` in seconds, or "". */
  value: string;
  readonly validity: ValidityState;
  readonly validationMessage: string;
  readonly willValidate: boolean;
  checkValidity(): boolean;
  reportValidity(): boolean;
}

declare global {
  interface HTMLElementTagNameMap { "stillwave-waveform": StillwaveWaveform }
}
