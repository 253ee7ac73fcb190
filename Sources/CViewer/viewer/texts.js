// @ts-check
import { direction, directed, isolated, language, leftToRight, listed, number, percent, plural } from "./language.js";
import { formatTime } from "./time.js";

// Every text of the page, in English: the reference for the files of other languages (texts-de.js and so on), each of which
// has the same names, and parameters with the same meaning. Elements of the page name their texts in data-text, data-label
// (for screen readers and as a tooltip) and data-hint.

export const texts = {
  title: "Stillwave",
  skip: "Skip to the waveform",
  recordings: "Recordings",
  showRecordings: "Show or hide the recordings",
  search: "Search by name",
  sortBy: "Sort by",
  sortDate: "Newest",
  sortName: "Name",
  sortLength: "Longest",
  add: "Add recordings",
  dropHere: "Drop recordings here",
  welcome: "Drop a recording here",
  welcomeTouch: "Choose a recording",
  welcomeMore: "Audio or video, up to hours long. The waveform appears while the file is being read.",
  choose: "Choose a file",
  noRecordings: "No recordings yet.",
  noMatch: "No recording has a matching name.",
  api: "API",
  close: "Close",

  askKey: "This service needs a key.",
  keyKept: "It is kept until you close this tab.",
  keyWrong: "This key isn’t valid.",
  accessKey: "Key",
  signIn: "Continue",
  signOut: "Forget the key",
  share: "Share",
  shareTitle: (/** @type {string} */ name) => `Share ${name}`,
  shareRights: "People with the link can",
  shareListen: "listen and read the labels",
  shareLabel: "also change the labels",
  shareTime: "The link works for",
  shareHour: "an hour",
  shareDay: "a day",
  shareWeek: "a week",
  shareMake: "Make a link",
  shareLink: "Link",
  shareCopy: "Copy",
  shareCopied: "The link is copied.",
  shareUntil: (/** @type {string} */ day, /** @type {string} */ time) => `Works until ${day}, ${time}.`,
  shareEnded: "This link doesn’t work anymore.",
  notShared: "This link doesn’t allow that.",

  overview: "Whole recording, with the visible window",
  help: "Drag to select. The wheel zooms, Shift and the wheel scroll, Alt and the wheel change the height. Keys: Space plays, arrows scroll or move the playhead, plus and minus zoom, Home and End go to the ends, comma and period move the playhead, Z zooms to the selection, N uses it as noise, L loops, 1 2 3 switch between original, cleaned and noise, question mark lists all keys.",
  regions: "Suggested noise",
  regionsSearched: "Looking for noise…",
  regionsNone: "No part with only noise was found.",
  selectionStart: "Start of the selection",
  selectionEnd: "End of the selection",
  viewTools: "View",
  display: "More: height, scale, channels, keyboard shortcuts",
  zoomIn: "Zoom in (+)",
  zoomOut: "Zoom out (−)",
  zoomSelection: "Zoom to selection (Z)",
  zoomAll: "Show all (0)",
  height: "Full scale, or fill the height",
  gain: (/** @type {number} */ decibels) => leftToRight(`${decibels > 0 ? "+" : ""}${number(decibels)} dB`),
  scaleUnit: "Scale in decibels, or linear",
  taller: "Increase the height",
  flatter: "Reduce the height",
  channels: "One lane per channel",
  keys: "Keyboard shortcuts (?)",
  original: "Original",
  cleaned: "Cleaned",
  residue: "Noise only",
  show: (/** @type {string} */ name) => `Show ${name}`,
  solo: (/** @type {string} */ name) => `Show only ${name}`,
  soloShort: "S",
  hearLayer: (/** @type {string} */ name) => `Hear ${name}`,
  removeLayer: (/** @type {string} */ name) => `Remove ${name} from the view`,
  download: (/** @type {string} */ name) => `Download ${name}`,

  cleaning: "Noise removal",
  actions: "Preview and clean",
  job: "Progress",
  messages: "Messages",
  noiseFrom: "Learn the noise from",
  noiseAuto: "the best stretch found",
  noiseStart: "Noise from",
  noiseEnd: "to",
  noiseClear: "Let the service find the noise",
  noiseHere: "This is noise",
  strength: "Strength",
  gentle: "Gentle",
  natural: "Natural",
  strong: "Strong",
  reduction: "Noise reduction",
  decibels: (/** @type {number} */ value) => leftToRight(`${number(value)} dB`),
  sensitivity: "Sensitivity",
  times: (/** @type {number} */ value) => `× ${number(value, 2)}`,
  method: "Method",
  mmse_lsa: "Log-spectral (best)",
  wiener: "Wiener",
  spectral_subtraction: "Spectral subtraction",
  keepResidue: "Keep only the removed noise",
  previewView: "Preview the visible part",
  previewSelection: "Preview the selection",
  previewAround: "Preview 30 s around here",
  previewShort: "Preview",
  cleanAll: "Clean everything",
  cleanShort: "Clean",
  cancel: "Cancel",
  suggestion: (/** @type {number} */ rank, /** @type {number} */ start, /** @type {number} */ end, /** @type {string} */ quality) =>
    `${rank}. ${formatTime(start, 1)} – ${formatTime(end, 1)}, ${quality}`,
  takeSuggestion: (/** @type {number} */ start, /** @type {number} */ end, /** @type {string} */ quality, /** @type {number} */ level) =>
    `Learn the noise from ${formatTime(start)} to ${formatTime(end)}: ${quality}, ${number(level, 1)} dBFS`,
  quality: (/** @type {number} */ score) => /** @type {string} */ (score >= 0.7 ? "only noise" : score >= 0.4 ? "mostly noise" : "perhaps noise"),
  cleanLater: "The service can't be reached. The cleaning begins when it is back.",
  hearSuggestion: (/** @type {number} */ start, /** @type {number} */ end) => `Hear the original from ${formatTime(start)} to ${formatTime(end)}`,
  variants: "Variants of the visible part.",
  variantsTooLong: "Zoom in to 30 seconds or less to see the variants.",
  takeVariant: (/** @type {string} */ name) => `Use the variant “${name}”`,

  play: "Play (Space)",
  pause: "Pause (Space)",
  loop: "Loop (L)",
  follow: "Follow the playhead (F)",
  speed: "Speed",
  hear: "Hear",
  playhead: "Playhead",
  playheadSaid: (/** @type {string} */ at, /** @type {string} */ duration) => `Playhead at ${at} of ${duration}`,
  selection: "Selection",
  from: "From",
  to: "To",
  length: "Length",
  playSelection: "Play the selection",
  clearSelection: "Clear the selection (Esc)",
  badTime: "Enter a time like 1:07.25.",

  rename: (/** @type {string} */ name) => `Rename ${name}`,
  remove: (/** @type {string} */ name) => `Delete ${name}`,
  deleted: (/** @type {string} */ name) => `Deleted “${name}”.`,
  undo: "Undo",
  undoKey: "Undo (Ctrl Z)",
  redo: "Redo (Ctrl Y)",
  edit: "Edit",
  renameLabel: (/** @type {string} */ name) => `New name of ${name}`,
  renamed: (/** @type {string} */ name) => `Renamed to “${name}”.`,
  channelsCount: (/** @type {number} */ value) => value === 1 ? "mono" : value === 2 ? "stereo" : plural(value, { other: "# channels" }),
  madeBy: (/** @type {string} */ settings, /** @type {string} */ time) => listed(["cleaned", settings.toLocaleLowerCase(language), time]),
  resultOf: (/** @type {string} */ name) => `Cleaned: ${name}`,
  noiseLevels: (/** @type {number} */ before, /** @type {number} */ after) =>
    `Noise ${number(before, 1)} → ${after < -95 ? "below −95" : number(after, 1)} dBFS`,
  hearBefore: "Hear before",
  hearAfter: "Hear after",
  sameFormat: (/** @type {string} */ container) => `${container} (as the original)`,
  downloadFormat: "Format of the download",
  downloadResult: "Download",
  cleanAgain: "Clean again with other settings",
  alreadyCleaned: (/** @type {string} */ name) => `With these settings, “${name}” exists already.`,
  cleanAnyway: "Clean anyway",
  reading: "being read",
  found: (/** @type {number} */ value) => plural(value, { one: "# recording shown", other: "# recordings shown" }),

  uploading: (/** @type {string} */ name) => `Uploading ${name}`,
  uploadMore: (/** @type {string} */ name, /** @type {number} */ more) => `${name} and ${plural(more, { one: "# other", other: "# others" })}`,
  uploadWaiting: "waiting",
  uploadPaused: "paused",
  uploadDone: (/** @type {string} */ name) => `Uploaded ${name}.`,
  uploadsDone: (/** @type {number} */ value) => plural(value, { one: "# file is uploaded.", other: "# files are uploaded." }),
  cancelAll: "Cancel all",
  uploadFailed: (/** @type {string} */ name, /** @type {string} */ reason) => `${name}: ${reason}`,
  uploadSetback: (/** @type {string} */ reason) => `${reason} Trying again…`,
  emptyFile: "This file is empty.",
  whichFiles: "Which files can be read",
  uploadLost: "The upload was interrupted.",
  resume: "Resume",
  pauseUpload: "Pause",
  retry: "Try again",
  readingFile: "Reading the recording",
  waiting: "Waiting for other jobs",
  removing: "Removing the noise",
  percent,
  left: (/** @type {number} */ seconds) => seconds < 1 ? "almost done"
    : seconds < 90 ? `${number(Math.ceil(seconds))} s left` : `${number(Math.ceil(seconds / 60))} min left`,
  done: "The noise is removed. Compare Original and Cleaned while it plays.",
  read: "The recording has been read.",
  notRead: "This recording could not be read.",
  unread: "could not be read",
  readingCanceled: "Reading it was canceled.",
  unknownFailure: "The service no longer has the reason.",
  removeFailed: "Remove",
  wasCancelled: "Canceled.",
  warning: (/** @type {string} */ detail) => `About this file: ${detail}`,
  warningCut: "It is incomplete. The part that exists is used.",
  warningLength: "The length that it states is wrong. All of the sound is used.",
  warningSkipped: "It contains bytes that are not sound. They are skipped.",
  warningStreams: "It consists of several streams. Those that belong together are used.",
  warningPauses: "Pauses that the telephone left out are filled in again.",
  warningNumbers: "It contains values that are not numbers. They count as silence.",
  warningOffset: "The sound was not centered. This was removed from the result.",
  warningFormat: "The result has another format than the original.",
  warningTracks: "Some tracks could not be copied to the result.",
  warningProfile: "The saved noise fits this recording only in part.",
  warningLoudness: "The result doesn't have the wanted loudness: it would be distorted, or is too quiet.",
  warningLabels: "The labels last longer than the recording.",
  warningSpeech: "Parts of this are not speech. They were cleaned with the usual method instead of the one for voices.",

  labels: "Labels",
  labelAdd: "Add a label (M)",
  labelShort: "Label",
  tracks: "Tracks",
  labelMenu: "Label tracks, import and export",
  labelText: "Text of the label",
  labelRemove: "Remove the label",
  labelsCrowded: (/** @type {number} */ value) => plural(value, { one: "# label. Zoom in to see it.", other: "# labels. Zoom in to see them." }),
  labelSaid: (/** @type {string} */ text, /** @type {string} */ from, /** @type {string} */ to) => `Label ${text || "without a text"}, ${from} to ${to}`,
  labelAdded: (/** @type {string} */ at) => `Added a label at ${at}.`,
  labelRemoved: (/** @type {string} */ text) => `Removed the label ${text}.`,
  labelsMerged: "These labels were changed elsewhere too. Both changes are kept.",
  labelsLost: "These labels were changed elsewhere. What you changed is no longer there, so your change was not saved.",
  lyrics: "Lyrics",
  chapters: "Chapters",
  track: "Label track",
  tracksNone: "This recording has no labels yet. Drop a file with a transcript, subtitles, lyrics or labels on it: WebVTT, SRT, LRC, Audacity’s labels, Podcasting 2.0 chapters, or JSON from Whisper.",
  trackNew: "New track",
  trackImport: "Import a file",
  chooseTrack: (/** @type {string} */ name) => `Show the track ${name}`,
  trackName: (/** @type {string} */ name) => `Name of ${name}`,
  trackKind: (/** @type {string} */ name) => `Kind of ${name}`,
  trackAbout: (/** @type {number} */ labels, /** @type {number} */ words) => listed([
    plural(labels, { one: "# label", other: "# labels" }), words > 0 && plural(words, { one: "# word with its time", other: "# words with their times" })]),
  exportFormat: (/** @type {string} */ name) => `Format for ${name}`,
  exportTrack: (/** @type {string} */ name) => `Export ${name}`,
  leftOut: (/** @type {string} */ format, /** @type {string} */ what) => `${format} can’t hold everything. Left out: ${what}.`,
  lostEmpty: "labels without a text",
  lostEnds: "ends of overlapping labels",
  lostBreaks: "line breaks",
  lostMarkup: "text that looks like markup",
  lostPrecision: "exact times",
  lostSpeakers: "speakers",
  lostWordEnds: "ends of overlapping words",
  lostWords: "times of words",
  imported: (/** @type {string} */ name, /** @type {number} */ value) => `Added the track “${name}” with ${plural(value, { one: "# label", other: "# labels" })}.`,
  notImported: (/** @type {string} */ name, /** @type {string} */ reason) => `${name}: ${reason}`,
  labelsTooLarge: (/** @type {string} */ name) => `${name} is larger than 16 MiB, the most that a file of labels may have.`,
  openFirst: (/** @type {string} */ name) => `Open the recording that ${name} belongs to, then drop it again.`,
  transcript: "Transcript",
  transcriptShow: "Transcript (T)",
  transcriptSearch: "Search the text",
  transcriptNone: "This track has no labels yet.",
  playFrom: (/** @type {string} */ time) => `Go to ${time}`,
  hits: (/** @type {number} */ value, /** @type {boolean} */ hasMore) => plural(value, { one: "# place", other: "# places" }) + (hasMore ? " so far" : ""),
  more: "Show more",
  singing: "Singing view",
  singingShow: "Singing view (K)",
  singingNone: "No text near here.",
  fullScreen: "Full screen",
  leaveFull: "Leave full screen",

  unreachable: "The service can't be reached. Trying again…",
  reachable: "The service is back.",
  loading: "Loading…",
  loadingLong: "The service is slow to answer. Trying again…",
  refused: (/** @type {number} */ status) => `The service responded with status ${status}.`,
  problemBusy: "The service is busy. Try again in a moment.",
  problemFull: "The service's disk is full.",
  problemQuota: "There is no more room for this. Delete what you no longer need.",
  problemDeleted: "This no longer exists. It may have been deleted in another window.",
  problemChanged: "This was changed in another window. Reload the page.",
  problemForbidden: "The service doesn't allow this.",
  problemFile: "The recording's file is missing or damaged. Upload it again.",
  problemShort: "This is too short. Mark a longer part.",
  problemOutside: "This part is outside the recording.",
  problemSilent: "The marked noise is silent. Mark a part in which the noise can be heard.",
  problemProfile: "The saved noise doesn't fit this recording.",
  problemLarge: "This is larger than the service accepts.",
  problemHeavy: "This took too long or too much memory, so the service stopped it.",
  problemUnread: "This is not a sound or video file that can be read.",
  problemFormat: "This format can't hold the sound. Choose another one.",
  problemUnknown: "It isn’t known whether this was saved. Reload the page to see.",
  problemService: "The service has failed. Try again; if it happens again, ask its operator.",
  faultAt: (/** @type {number} */ line, /** @type {number} */ column, /** @type {string} */ fault) => `Line ${number(line)}, column ${number(column)}: ${fault}`,
  faultTime: "There must be a valid time here.",
  faultEnd: "The end is before the start.",
  faultWords: "The times of the words don't fit the label.",
  faultMuch: "This is more than a track can have.",
  faultJSON: "The JSON doesn't have the expected form.",
  faultBand: "The lower frequency is above the upper one.",
  faultFormat: "The file has none of the formats that can be read.",
  waveLabel: (/** @type {string} */ name, /** @type {string} */ from, /** @type {string} */ to) => `Waveform of ${name}, ${from} to ${to}`,
  selectionSaid: (/** @type {string} */ from, /** @type {string} */ to) => `Selected ${from} to ${to}`,
  noiseSaid: (/** @type {string} */ from, /** @type {string} */ to) => `Learning the noise from ${from} to ${to}`,

  exportSelection: "Save the selection",
  exportTitle: (/** @type {string} */ from, /** @type {string} */ to) => `Selection from ${from} to ${to}`,
  exportFrom: (/** @type {string} */ name) => `From “${name}”`,
  keepExcerpt: "Keep as a new recording",
  trimming: "Copying the selection",
  excerptKept: (/** @type {string} */ name) => `“${name}” is in the list.`,
  openIt: "Open",
  excerptAt: (/** @type {string} */ time) => `excerpt, ${time}`,

  loudness: "Loudness",
  sameLoudness: "As it is",
  loudnessFor: (/** @type {number} */ value, /** @type {string} */ use) => `${number(value)} LUFS (${use})`,
  loudnessValue: (/** @type {number} */ value) => `${number(value)} LUFS`,
  forPodcasts: "podcasts",
  forStreaming: "streaming",
  forBroadcast: "broadcast",
  loudnessLevels: (/** @type {number} */ before, /** @type {number} */ after) => `Loudness ${number(before, 1)} → ${number(after, 1)} LUFS`,

  profiles: "Saved noise",
  saveNoise: "Save this noise",
  noiseName: "Name of the noise",
  save: "Save",
  noiseOfProfile: (/** @type {string} */ name) => `the saved noise “${name}”`,
  useProfile: (/** @type {string} */ name) => `Use the noise “${name}”`,
  profileSaved: (/** @type {string} */ name) => `Saved the noise “${name}”.`,

  spectrum: "Spectrum of the recording, of its noise, and of what is removed",
  spectrumAll: "Recording",
  spectrumNoise: "Noise",
  spectrumRemoved: "Removed",
  hertz: (/** @type {number} */ value) => value < 1000 ? `${number(value)} Hz` : `${number(value / 1000)} kHz`,

  deletedElsewhere: (/** @type {string} */ name) => `“${name}” was deleted in another window.`,

  keyList: /** @type {[string, string][]} */ ([
    ["Space", "Play or pause the selection, or from the playhead"],
    ["← → Page ↑ ↓", "Scroll; if everything is shown, ← → move the playhead"], ["Shift ← →", "Extend the selection"],
    ["+ − ↑ ↓", "Zoom in and out"], ["Home End", "Go to the start and the end"], [", .", "Move the playhead; with Shift further"],
    ["Z", "Zoom to the selection"], ["0", "Show all"], ["[ ]", "Reduce and increase the height"],
    ["N", "Learn the noise from the selection"], ["P", "Preview the selection or the visible part, up to 30 seconds"],
    ["1 2 3", "Hear the original, the cleaned sound (2 again: the next one), only the noise"],
    ["Ctrl Z, Ctrl Shift Z or Ctrl Y", "Undo and redo"], ["L", "Loop"], ["F", "Follow the playhead"],
    ["M", "Add a label at the selection or the playhead; while playing, hold it for a stretch"], ["T K", "Show the transcript, the singing view"],
    ["Shift ← →", "On a label: move its end; with Ctrl, its start"],
    ["↑ ↓, F2, Delete", "In the list: go to another recording, rename it, delete it"],
    ["← →, F2, Delete", "In the lane of labels: go to another label, change its text, remove it"],
    ["Esc", "Clear the selection"], ["Shift-click", "Move the nearer end of the selection"],
    ["Double-click", "Select the sound between two silences, or a silence"],
    ["Wheel", "Zoom; with Shift scroll; with Alt change the height"],
    ["Touch", "One finger scrolls, two zoom, a long press selects"],
  ]),
};

/** @typedef {typeof texts} Texts */

/**
 * The texts of other languages. Only the one that is used is loaded.
 * @type {{ [tag: string]: () => Promise<{ texts: Texts }> }}
 */
export const translations = {
  de: () => import("./texts-de.js"),
  es: () => import("./texts-es.js"),
  fr: () => import("./texts-fr.js"),
  ja: () => import("./texts-ja.js"),
  ar: () => import("./texts-ar.js"),
};

// Without the file, the texts stay English.
Object.assign(texts, (await translations[language]?.().catch(() => null))?.texts);
// Sentences isolate the names that are put into them, and keep their own direction if they begin with one.
for (const [name, text] of Object.entries(/** @type {any} */ (texts))) {
  if (typeof text !== "function") continue;
  Object.assign(texts, { [name]: new Proxy(text, { apply: (said, _, values) => directed(said(...values.map(isolated))) }) });
}
/** Names that the page gives in each language, and the texts that are those names. */
const given = /** @type {const} */ ({
  gentle: ["Gentle", "Sanft", "Suave", "Douce", "弱め", "خفيفة"], natural: ["Natural", "Natürlich", "Naturelle", "自然", "طبيعية"],
  strong: ["Strong", "Stark", "Fuerte", "Forte", "強め", "قوية"], labels: ["Labels", "Markierungen", "Etiquetas", "Étiquettes", "ラベル", "العلامات"],
  residue: ["residue", "Noise only", "Nur Rauschen", "Solo ruido", "Bruit seul", "ノイズのみ", "الضوضاء فقط"],
});

/**
 * Returns a name that the page gave, perhaps in another language, in the one that is used; others stay as they are.
 * @param {string} name
 */
export function translated(name) {
  for (const [text, names] of Object.entries(given)) if (/** @type {readonly string[]} */ (names).includes(name)) return texts[/** @type {keyof typeof given} */ (text)];
  return name;
}

document.documentElement.lang = language;
document.documentElement.dir = direction;

/**
 * Fills in the texts of the page's elements.
 * @param {ParentNode} root
 */
export function fillTexts(root) {
  const text = (/** @type {string | undefined} */ name) => /** @type {any} */ (texts)[name ?? ""];
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("[data-text]"))) {
    element.textContent = text(element.dataset.text);
  }
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("[data-label]"))) {
    element.title = text(element.dataset.label);
    element.setAttribute("aria-label", text(element.dataset.label));
  }
  for (const element of /** @type {NodeListOf<HTMLInputElement>} */ (root.querySelectorAll("[data-hint]"))) {
    element.placeholder = text(element.dataset.hint);
    element.setAttribute("aria-label", text(element.dataset.hint));
  }
}
