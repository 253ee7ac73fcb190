// @ts-check
// Assembles the page. Dependencies go one way:
//   service → tiles, session (data) → view (state of the view) → stage (drawing) → controls (input)
// Each module calls those before it, and notifies those after it with a signal.
import { readAddress, writeAddress } from "./address.js";
import { CleaningPanel } from "./cleaning.js";
import { connectControls } from "./controls.js";
import { Drawer } from "./drawers.js";
import { LabelEditor } from "./editing.js";
import { isLabelFile, Labelling } from "./labelling.js";
import { Labels } from "./labels.js";
import { Lane } from "./lane.js";
import { Changes } from "./events.js";
import { Foresight } from "./foresight.js";
import { Library } from "./library.js";
import { Media } from "./media.js";
import { connectMediaKeys } from "./mediakeys.js";
import { recall } from "./memory.js";
import { announce, tell } from "./messages.js";
import { Meter } from "./meter.js";
import { afterCalm, find } from "./page.js";
import { Player } from "./player.js";
import { Previews } from "./preview.js";
import { explain } from "./problems.js";
import { Profiles } from "./profiles.js";
import { ResultCard } from "./result.js";
import { Service } from "./service.js";
import { Session } from "./session.js";
import { KeyDialog, ShareDialog } from "./sharing.js";
import { SpectrumPicture } from "./spectrum.js";
import { Stage } from "./stage.js";
import { fillTexts, texts } from "./texts.js";
import { TileStore } from "./tiles.js";
import { Transfers } from "./transfers.js";
import { Variants } from "./variants.js";
import { Undo } from "./undo.js";
import { View } from "./view.js";

fillTexts(document);

const service = new Service(), { credentials } = service;
new KeyDialog(credentials);
document.body.classList.toggle("shared", credentials.share !== null);
document.body.classList.toggle("read-only", !credentials.allows("write"));
const tiles = new TileStore(service);
const session = new Session(service, tiles);
const view = new View();
const stage = new Stage(view, session, tiles);
const profiles = new Profiles(service, session, view);
const panel = new CleaningPanel(session, view, profiles);
const spectrum = new SpectrumPicture(service, session, view, panel, profiles);
const previews = new Previews(service);
const media = new Media(service, find("picture"));
const player = new Player(previews, session, view, () => ({ ...panel.settings, output: "denoised" }), media);
new Variants(previews, session, view, panel);
new Foresight(previews, player, stage, panel);
new Meter(session, view, player, stage);
const undo = new Undo(view, session);
const labels = new Labels(service, session, undo);
/**
 * A view that is loaded when it is first shown.
 * @typedef {{ isShown: boolean, show: (isShown: boolean) => void }} Shown
 * @param {() => Promise<Shown>} load
 */
function later(load) {
  let isWanted = false;
  /** @type {Promise<Shown> | null} */
  let loading = null;
  /** @type {Shown | null} */
  let view = null;
  return {
    get isShown() { return view?.isShown ?? isWanted; },
    async show(/** @type {boolean} */ isShown) {
      isWanted = isShown;
      if (!isShown && !loading) return;
      try {
        view = await (loading ??= load());
        // It may be closed again while it is loaded.
        if (view.isShown !== isWanted) view.show(isWanted);
      } catch {
        loading = null;
        isWanted = false;
        tell(texts.unreachable, { isError: true });
      }
    },
  };
}
const spectrogram = later(async () => {
  const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "viewer/spectrogram.css" });
  const styled = new Promise((resolve, reject) => Object.assign(style, { onload: resolve, onerror: reject }));
  document.head.append(style);
  const [{ SpectrogramView }] = await Promise.all([import("./spectrogramview.js"), styled]);
  return new SpectrogramView({ session, view, stage, player, previews, spectrum });
});
const toggleSpectrogram = () => void spectrogram.show(!spectrogram.isShown);
find("spectrogram-show").onclick = toggleSpectrogram;
const labelling = new Labelling(labels, view, player, {
  editor: new LabelEditor(new Lane(labels, view, stage), stage, seconds => player.seek(seconds)),
  transcript: later(async () => new (await import("./transcript.js")).Transcript(labels, view, stage, player)),
  singing: later(async () => new (await import("./singing.js")).SingingView(labels, view, stage, player)),
});
connectControls({ view, stage, session, player, undo, keys: { ...labelling.keys, g: toggleSpectrogram } });

panel.onSettled = () => void player.refresh();
panel.onChosen = ({ start }) => player.seek(start);
panel.onHear = region => void player.playOriginal(region);
player.changed.subscribe(() => panel.showHeard(player.isPlaying ? player.range : null));
stage.beforeFrame = () => {
  const goesOn = player.follow();
  if (goesOn) followPlayhead();
  return goesOn;
};
find("picture-full").onclick = () => (document.fullscreenElement ? document.exitFullscreen() : find("picture-box").requestFullscreen());
for (const event of ["loadeddata", "seeked"]) media.picture.addEventListener(event, () => stage.ask());
session.failed.subscribe(error => {
  tell(error.message, { isError: true });
  find("share-ended").hidden = !credentials.share || session.original !== null;
});
new ShareDialog(service, session, player);
connectMediaKeys(player, session, view);

/** Turns the page when the playhead leaves it. */
function followPlayhead() {
  const { start, end } = view.target, span = end - start;
  if (!player.isFollowing || view.playhead >= start && view.playhead < end - span * 0.04) return;
  if (view.playhead < start - span || end < view.duration) view.show({ start: view.playhead - span * 0.06, end: view.playhead + span * 0.94 });
}

const listDrawer = new Drawer("library", "library-shown", ["menu", "sending"]);
const settingsDrawer = new Drawer("cleaning", "settings-shown", ["settings", "close-settings"]);
new ResultCard(service, session, player, () => {
  if (find("settings").checkVisibility()) settingsDrawer.open(find("result-again"));
  find("reduction").focus();
});

// What is open.
const library = new Library(service, session, undo, new Changes(service), recording => {
  const layer = session.add(recording);
  if (!layer) return void open(recording.id, recording);
  listDrawer.close();
  player.hear(layer);
});

/**
 * @param {string} id
 * @param {any} [known]
 * @param {ReturnType<typeof readAddress>} [place]
 */
async function open(id, known, place) {
  listDrawer.close();
  await session.open(known ?? id, place?.others);
  const { original } = session;
  if (!original) return;
  view.reset(session.duration, original.waveform.sampleRate);
  if (place?.view) view.show(place.view, true);
  if (place?.mark) view.select(place.mark);
  if (place?.noise) view.markNoise(place.noise);
  if (place?.at) view.movePlayhead(place.at);
  stage.redraw();
  for (const { recording } of session.layers) {
    for (const found of recording.warnings) {
      // This page plays such files in parts, which are exact.
      if (found.code !== "seeks_inexactly") tell(texts.warning(explain(found, found.code)));
    }
  }
}

// The dialog that saves the selection is loaded when it is first opened, and then takes over its button.
find("selection-save").onclick = async () => {
  try {
    const { ExcerptDialog } = await import("./excerpt.js");
    new ExcerptDialog(service, session, view, player, (recording, isOpened) => {
      void library.load();
      if (isOpened) void open(recording.id, recording);
    });
    find("selection-save").onclick();
  } catch {
    tell(texts.unreachable, { isError: true });
  }
};

// A recording that could not be read says so in its place.
session.changed.subscribe(() => {
  const { failure } = session.original ?? { failure: "" };
  find("failure").hidden = !failure;
  if (find("failure-reason").textContent !== failure) find("failure-reason").textContent = failure;
});
find("failure-retry").onclick = () => { if (session.original) void session.readAgain(session.original.recording.id); };
find("failure-remove").onclick = () => { if (session.original) library.remove(session.original.recording); };

session.changed.subscribe(() => {
  const { original, cleaned } = session, isOpen = original !== null;
  find("welcome").hidden = isOpen;
  find("document").hidden = !isOpen;
  document.body.classList.toggle("document-open", isOpen);
  const name = (cleaned ?? original)?.recording.name ?? "";
  find("name").textContent = name;
  document.title = name ? `${name} – ${texts.title}` : texts.title;
  if (session.layers.some(layer => layer.job)) stage.ask();
});

// The address follows the view, so that a link restores it, and Back leads to the former recording or window.
let written = location.hash;
const remember = afterCalm(300, () => {
  const before = readAddress(location.hash), isInUse = session.original !== null && before.id !== "" && !player.isPlaying;
  written = writeAddress(session, view, credentials.share);
  if (written === location.hash) return;
  const after = readAddress(written), isStep = after.id !== before.id || JSON.stringify(after.view) !== JSON.stringify(before.view);
  if (isStep && isInUse) history.pushState(null, "", written);
  else history.replaceState(null, "", written || location.pathname);
});
for (const signal of [view.rested, view.selected, view.noiseMarked, session.changed, player.changed]) signal.subscribe(remember);
view.moved.subscribe(() => { if (!player.isPlaying) remember(); });
addEventListener("hashchange", () => {
  // Another link may share something else.
  if (readAddress(location.hash).token !== (credentials.share?.token ?? "")) location.reload();
  else if (location.hash !== written) openAddress();
});
function openAddress() {
  const place = readAddress(location.hash), front = session.cleaned ?? session.original;
  const others = session.results.filter(layer => layer !== front).map(layer => layer.recording.id);
  if (place.id && place.id === front?.recording.id && String(place.others) === String(others)) {
    written = location.hash;
    view.show(place.view ?? { start: 0, end: view.duration });
    view.select(place.mark);
    if (place.at && !player.isPlaying) view.movePlayhead(place.at);
    if (JSON.stringify(place.noise) !== JSON.stringify(view.noise)) view.markNoise(place.noise);
  } else if (place.id) void open(place.id, undefined, place);
}

// A link shares what there is.
if (credentials.share) for (const name of ["dragover", "drop"]) addEventListener(name, event => event.preventDefault());
else new Transfers(service, (id, isLast) => {
  void library.load();
  if (isLast || !session.original) void open(id);
}, file => {
  if (!isLabelFile(file)) return false;
  if (session.original) void labelling.take(file);
  else tell(texts.openFirst(file.name), { isError: true });
  return true;
});

// Reports once that the service is unreachable, and again when it is back.
service.reachable.subscribe(isReachable => {
  find("away").hidden = isReachable;
  if (isReachable) {
    announce(texts.reachable);
    void library.load();
    stage.redraw();
  }
});

openAddress();
void library.load();
if (recall("spectrogram")?.isShown) void spectrogram.show(true);
