// @ts-check
import { texts } from "./texts.js";

/** How far the keys go back and forth, in seconds. */
const step = 10;

/**
 * Connects the media keys, the lock screen and headphones (Media Session).
 * @param {import("./player.js").Player} player
 * @param {import("./session.js").Session} session
 * @param {import("./view.js").View} view
 */
export function connectMediaKeys(player, session, view) {
  const { mediaSession: keys } = navigator;
  if (!keys) return;
  /** @type {Partial<Record<MediaSessionAction, (details: MediaSessionActionDetails) => void>>} */
  const actions = {
    play: () => void player.play(), pause: () => player.pause(), stop: () => player.pause(), previoustrack: () => player.seek(0),
    seekbackward: ({ seekOffset }) => player.seek(view.playhead - (seekOffset ?? step)),
    seekforward: ({ seekOffset }) => player.seek(view.playhead + (seekOffset ?? step)),
    seekto: ({ seekTime }) => player.seek(seekTime ?? 0),
  };
  for (const [name, action] of Object.entries(actions)) {
    // Browsers reject actions that they don't know.
    try { keys.setActionHandler(/** @type {MediaSessionAction} */ (name), action); } catch { /* It stays without. */ }
  }
  let shown = "";
  const show = () => {
    const title = (session.cleaned ?? session.original)?.recording.name ?? "";
    if (title !== shown) keys.metadata = title ? new MediaMetadata({ title, artist: texts.title }) : null;
    shown = title;
    keys.playbackState = !title ? "none" : player.isPlaying ? "playing" : "paused";
    if (title) keys.setPositionState?.({ duration: view.duration, position: Math.min(view.duration, view.playhead) });
  };
  session.changed.subscribe(show);
  player.changed.subscribe(show);
}
