"""What /docs shows, and that it reads openapi.yaml as other programs do."""

import json
import os
import subprocess

import yaml
from material import Service, speech_like, write_wav
from webdriver import Browser, wait

ROOT = os.path.join(os.path.dirname(__file__), "../..")


def check(binary, kinds, folder, pictures):
    failures = 0
    reader = os.path.abspath(os.path.join(ROOT, "Sources/CViewer/docs/yaml.js"))
    document = open(os.path.join(ROOT, "openapi.yaml"), encoding="utf-8").read()
    script = f"""import {{ readFileSync }} from "fs";
        const {{ parseYAML }} = await import(`data:text/javascript,${{encodeURIComponent(readFileSync({json.dumps(reader)}, "utf8"))}}`);
        console.log(JSON.stringify(parseYAML(readFileSync(0, "utf8"))));"""
    made = subprocess.run(["node", "--input-type=module", "-e", script], input=document, check=True, capture_output=True, text=True).stdout
    if json.loads(made) != json.loads(json.dumps(yaml.safe_load(document))):
        failures += 1
        print("  openapi.yaml is read differently: FAILED")
    with Service(binary) as service:
        identifier = service.upload(write_wav(folder + "/talk.wav", speech_like(5, 8000, 3), 8000))
        for kind in kinds:
            with kind() as browser:
                try:
                    walk(browser, service, identifier, pictures if kind is Browser else None)
                    print(f"  {kind.__name__}: the documentation", flush=True)
                except Exception as error:  # noqa: BLE001
                    failures += 1
                    print(f"  {kind.__name__}: the documentation: FAILED: {type(error).__name__} {error}", flush=True)
                    browser.screenshot(os.path.join(pictures, f"failed docs {kind.__name__}.png"))
    return failures


def walk(browser, service, identifier, pictures):
    text = lambda selector: browser.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)  # noqa: E731
    browser.open(service.address + "/docs")
    wait("the contents", lambda: browser.run("return document.querySelectorAll('nav a').length") > 80)
    with open(os.path.join(ROOT, "openapi.yaml"), encoding="utf-8") as file:
        operations = [f"{method.upper()} {path}" for path, item in yaml.safe_load(file)["paths"].items() for method in item if method != "parameters"]
    shown = browser.run("return [...document.querySelectorAll('nav a')].map(a => decodeURI(a.hash.slice(1)))")
    assert [name for name in operations if name not in shown] == []
    # Every entry can be shown.
    for name in shown:
        browser.run("location.hash = arguments[0]; return new Promise(done => setTimeout(done))", name)
        wait(f"{name} is shown", lambda: len(text("main h1")) > 0 and not text("main [role=alert]"))
    browser.run("location.hash = ''")
    browser.type("#search", "waveform.png")
    wait("the search", lambda: 0 < browser.run("return document.querySelectorAll('nav a').length") < 40)
    browser.run("location.hash = 'GET /v1/recordings/{id}/waveform.png'")
    wait("the operation", lambda: "waveform.png" in text("main h1"))
    assert service.address in text("main pre")
    browser.type("input[name=id]", identifier)
    browser.type("input[name=width]", "400")
    browser.click("main form button")
    wait("the picture", lambda: browser.run("return document.querySelector('[role=status] img')?.naturalWidth") == 400)
    assert "200" in text("main [role=status] strong")
    axe = os.environ.get("STILLWAVE_AXE")
    if pictures and axe:
        with open(axe, encoding="utf-8") as file:
            browser.inject(file.read())
        found = browser.run("return axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(node => node.target)]))")
        assert found == [], found
    if pictures:
        for name, size, dark in (("docs", (1280, 900), False), ("docs dark phone", (390, 844), True)):
            browser.size(*size, touch=dark)
            browser.dark(dark)
            browser.screenshot(os.path.join(pictures, name + ".png"))
        browser.run("location.hash = 'POST /v1/recordings/{id}/denoise'")
        wait("the operation", lambda: "denoise" in text("main h1"))
        browser.size(1280, 900)
        browser.dark(False)
        browser.screenshot(os.path.join(pictures, "docs denoise.png"))
    assert browser.console() == [], browser.console()
