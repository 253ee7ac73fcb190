"""Libraries that show waveforms, as packages of PyPI ship them: the scripts of wavesurfer.js, peaks.js, waveform-data.js."""

import glob
import os
import subprocess
import sys
import tempfile

PACKAGES = ["wavesurfer==0.3.9", "peaksjs-widget==0.2.1"]

# The second package has peaks.js 3.4.2 and waveform-data.js 4.3.0 as modules of webpack; this runs them.
RUNTIME = """{
  const modules = Object.assign({}, ...webpackChunkpeaksjs_widget.map(([, made]) => made)), ready = {};
  const require = id => {
    if (ready[id]) return ready[id].exports;
    const module = ready[id] = { exports: {} };
    modules[id].call(module.exports, module, module.exports, require);
    return module.exports;
  };
  require.r = exports => Object.defineProperty(exports, "__esModule", { value: true });
  require.d = (exports, made) => { for (const name in made) Object.defineProperty(exports, name, { enumerable: true, get: made[name] }); };
  require.o = (object, name) => Object.hasOwn(object, name);
  require.n = module => { const get = () => module?.__esModule ? module.default : module; require.d(get, { a: get }); return get; };
  // The package expects JupyterLab to share this one.
  modules[1986] = module => { module.exports = require(317); };
  window.Peaks = require(8228).default;
  window.WaveformData = require(317).default;
}"""


def scripts():
    """Returns the scripts by name. Installs the packages if they aren't there."""
    folder = os.path.join(tempfile.gettempdir(), "stillwave-waveform-libraries")
    if not os.path.isdir(folder + "/peaksjs_widget"):
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--target", folder, *PACKAGES], check=True)
    read = lambda path: open(path, encoding="utf-8").read()  # noqa: E731
    chunks = [read(path) for path in sorted(glob.glob(folder + "/peaksjs_widget/labextension/static/[0-9]*.js"))]
    return {"wavesurfer.js": read(folder + "/wavesurfer/js/wavesurfer.min.js"), "peaks.js": "\n".join(chunks) + "\n" + RUNTIME}


def frameworks():
    """Returns the scripts of React 18 and Vue 2, as Debian ships them, by name; downloads the packages once."""
    folder = os.path.join(tempfile.gettempdir(), "stillwave-frameworks")
    if not os.path.isdir(folder + "/usr/share/javascript/vue"):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["apt-get", "download", "-qq", "node-react", "node-react-dom", "libjs-vue"], cwd=folder, check=True, stderr=subprocess.DEVNULL)
        for package in glob.glob(folder + "/*.deb"):
            subprocess.run(["dpkg", "-x", package, folder], check=True)
    paths = {"react.js": "nodejs/react/umd/react.production.min.js", "react-dom.js": "nodejs/react-dom/umd/react-dom.production.min.js",
             "vue.js": "javascript/vue/vue.min.js"}
    return {name: open(f"{folder}/usr/share/{path}", encoding="utf-8").read() for name, path in paths.items()}
