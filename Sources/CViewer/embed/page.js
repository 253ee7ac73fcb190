// @ts-check
// The script of /embed: makes an element of what the address says, #recording=…&token=…&theme=dark&controls. Controls are
// shown unless it says controls=0.

const names = ["recording", "token", "start", "end", "overlay", "labels", "spectrogram", "theme"];

function show() {
  const fields = new URLSearchParams(location.hash.slice(1)), element = document.createElement("stillwave-waveform");
  element.setAttribute("src", new URL(".", location.href).href);
  for (const name of names) if (fields.has(name)) element.setAttribute(name, fields.get(name) ?? "");
  if (fields.get("controls") !== "0") element.setAttribute("controls", "");
  document.documentElement.dataset.theme = fields.get("theme") ?? "";
  document.body.replaceChildren(element);
}

addEventListener("hashchange", show);
show();
