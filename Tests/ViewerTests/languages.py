"""Every language of the page: whether its texts are complete, and whether they fit."""

import os
import re

from webdriver import wait

TAGS = ("de", "es", "fr", "ja", "ar")
SIZES = ((390, 844), (844, 390), (1024, 600), (1440, 900), (3840, 2160))

# Compares each language's texts with the English ones. Functions get numbers that can be found in what they return.
COMPARE = """
return import("./viewer/texts.js").then(async ({ texts, translations }) => {
  const found = [], names = Object.keys(texts);
  const values = [41, 53, 67, 79].map(value => Object.assign(new String(value), { toLocaleLowerCase: () => String(value) }));
  // Which of its arguments a text contains, whatever the marks between digits.
  const held = text => {
    const digits = text(...values.slice(0, text.length)).replace(/[^0-9]/g, "");
    return values.slice(0, text.length).filter(value => digits.includes(value)).join();
  };
  for (const [tag, load] of Object.entries(translations)) {
    const other = (await load()).texts;
    for (const name of names) if (!(name in other)) found.push([tag, "lacks", name]);
    for (const name of Object.keys(other)) {
      const [text, english] = [other[name], texts[name]];
      if (!names.includes(name)) found.push([tag, "has too much", name]);
      else if (typeof text !== typeof english) found.push([tag, "isn't the same kind", name]);
      else if (typeof text === "function") {
        if (text.length !== english.length) found.push([tag, "has other parameters", name]);
        else if (held(text) !== held(english)) found.push([tag, "shows other parameters", name, held(text), held(english)]);
      } else if (typeof text === "string") {
        if (!text.trim()) found.push([tag, "is empty", name]);
        if (text === english && text.includes(" ")) found.push([tag, "isn't translated", name]);
      } else if (text.length !== english.length || text.some(row => row.length !== 2)) found.push([tag, "has other rows", name]);
    }
  }
  for (const attribute of ["text", "label", "hint"]) {
    const templates = [...document.querySelectorAll("template")].map(template => template.content);
    for (const root of [document, ...templates]) {
      for (const element of root.querySelectorAll(`[data-${attribute}]`)) {
        if (typeof texts[element.dataset[attribute]] !== "string") found.push(["the page names a text that doesn't exist", element.dataset[attribute]]);
      }
    }
  }
  return [Object.keys(translations), found];
});
"""


# Problems and warnings that the page has a sentence for, as its module lists them, and where warnings are written.
SOURCES = os.path.join(os.path.dirname(__file__), "../../Sources")
EXPLAINED = os.path.join(SOURCES, "CViewer/viewer/problems.js")
WARNINGS = [os.path.join(SOURCES, path) for path in (
    "Processing/Warnings.swift", "Processing/Warning+Result.swift", "Workers/Warning+Result.swift", "Workers/Warning+Tags.swift",
    "Processing/ImportRecording.swift",
    "AudioService/Labels/LabelDocuments.swift")]

# What a format of labels can't hold, and how the service names it to programs.
LOSSES, API = os.path.join(SOURCES, "CViewer/viewer/labelling.js"), os.path.join(SOURCES, "../openapi.yaml")

# The direction in which a message is shown that consists of names.
DIRECTION = """return import("./viewer/texts.js").then(({ texts }) => {
  const element = document.createElement("span");
  element.dir = "auto";
  element.textContent = texts.uploadFailed("interview.wav", texts.emptyFile);
  document.body.append(element);
  const found = getComputedStyle(element).direction;
  element.remove();
  return found;
});"""

# Whether a name is isolated within a sentence (UAX #9): FSI, the name, PDI.
ISOLATED = """return import("./viewer/texts.js").then(({ texts }) => {
  const holds = name => texts.remove(name).includes(`\u2068${name}\u2069`);
  return [holds("Interview (1)"), holds("مقابلة (1)")];
});"""


def check_texts(browser, service):
    # Words that the page has before its scripts are those that the scripts put there.
    with open(os.path.join(SOURCES, "CViewer/index.html"), encoding="utf-8") as file:
        words = re.findall(r'data-text="(\w+)"[^>]*>([^<]+)<', file.read())
    wrong = browser.run("const [words] = arguments; return import('./viewer/texts.js').then(({ texts }) => words.filter(([name, text]) => texts[name] !== text))", words)
    assert len(words) >= 6 and not wrong, wrong
    tags, found = browser.run(COMPARE)
    assert sorted(tags) == sorted(TAGS) and not found, found
    with open(EXPLAINED, encoding="utf-8") as file:
        _, problems, warnings, faults = file.read().split("({", 3)
    codes = re.findall(r"[a-z]+(?:_[a-z]+)+|unavailable|stalled|unauthorized|measuring|converting", problems.split("})")[0])
    unknown = [code for code in codes if service.request("GET", f"/problems/{code}")[0] != 200]
    assert len(codes) > 50 and not unknown, unknown
    written = set()
    for path in WARNINGS:
        with open(path, encoding="utf-8") as file:
            for line in re.findall(r"code: (.*)", file.read()):
                written.update(re.findall(r'"(\w+)"', line.split("detail:")[0]))
    explained = set(" ".join(re.findall(r'"([a-z_ ]+)"', warnings.split("})")[0])).split())
    # The page plays files exactly in which others only guess.
    written.remove("seeks_inexactly")
    assert len(written) > 15 and written == explained, written ^ explained
    with open(API, encoding="utf-8") as file:
        api = file.read()
    named = set(re.findall(r"- (\w+)", re.search(r"\n        fault:.*?(?=\n        line:)", api, re.DOTALL)[0]))
    explained = set(" ".join(re.findall(r'"([a-z_ ]+)"', faults.split("})")[0])).split())
    assert len(named) > 15 and named == explained, named ^ explained
    named = set(re.findall(r"`([a-z-]+)`", re.search(r"can't hold, separated by commas;(.*?)schema:", api, re.DOTALL)[1]))
    with open(LOSSES, encoding="utf-8") as file:
        told = set(re.findall(r'"?([a-z-]+)"?: texts\.lost', file.read()))
    assert len(named) > 4 and named <= told, named ^ told
    assert browser.run(ISOLATED) == [False, True]


def check_room(browser, page, recording, folder, pictures):
    """Opens a result in each language and size, with a selection and marked noise."""
    labels = os.path.join(folder, "backward.srt")
    with open(labels, "w", encoding="utf-8") as file:
        file.write("1\n00:00:05,000 --> 00:00:02,000\nbackward\n")
    for tag in TAGS:
        browser.size(1440, 900)
        browser.language(f"{tag}-x-unknown,{tag},en")
        page.open(f"{recording}&view=0-20&mark=16-19.5&noise=0.2-1.2")
        wait("the result is described", lambda: browser.text("#result-figures"))
        kind = browser.run("return [document.documentElement.lang, document.documentElement.dir]")
        assert kind == [tag, "rtl" if tag == "ar" else "ltr"], kind
        mark = "." if tag in ("ja", "ar") else ","
        assert browser.value("#select-from") == f"0:16{mark}000", browser.value("#select-from")
        assert browser.run(ISOLATED) == [tag == "ar", True], tag
        assert browser.run(DIRECTION) == kind[1], tag
        page.open()
        browser.run("location.hash = '#00000000-0000-7000-8000-000000000000'")
        sentence = browser.run("return import('./viewer/texts.js').then(({ texts }) => texts.problemDeleted)")
        wait("a problem is explained in the language", lambda: page.toast() == sentence)
        page.open(f"{recording}&view=0-20&mark=16-19.5&noise=0.2-1.2")
        wait("the result is described", lambda: browser.text("#result-figures"))
        browser.choose("#label-file", [labels])
        sentence = browser.run("return import('./viewer/texts.js').then(({ texts }) => texts.faultAt(2, 18, texts.faultEnd))")
        wait("and what is wrong in a file, with its place", lambda: sentence in page.toast())
        browser.click(".toast [data-part=close]")
        browser.console()
        for width, height in SIZES:
            browser.size(width, height, touch=min(width, height) < 400)
            browser.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            found = page.overflow()
            assert not found, f"{tag} at {width} x {height}: {found}"
            if (width, height) in ((390, 844), (1440, 900)):
                page.settle()
                browser.screenshot(os.path.join(pictures, f"{tag} {width} x {height}.png"))
    axis = browser.run("""const left = id => document.querySelector(id).getBoundingClientRect().left;
      return [left("#library") > left("#cleaning"), left("#handle-start") < left("#handle-end")];""")
    assert axis == [True, True], f"Arabic mirrors the page, but not the time: {axis}"
