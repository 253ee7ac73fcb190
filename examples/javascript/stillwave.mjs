// A small client for Stillwave with nothing but fetch, for browsers and node 20. As a command, it cleans a file:
//
//   node stillwave.mjs talk.wav clean.flac

const pieceBytes = 8 << 20;
const pause = milliseconds => new Promise(done => setTimeout(done, milliseconds));

export class Stillwave {
  constructor(url = "http://127.0.0.1:8080", key = "") {
    this.url = url.replace(/\/$/, "");
    this.key = key;
  }

  /** Sends a request, again if the service is busy. Throws an error with the service's `problem` if it is refused. */
  async call(method, path, { headers = {}, body, tries = 8 } = {}) {
    for (let attempt = 1; ; attempt++) {
      const answer = await fetch(this.url + path, { method, body, headers: { ...headers, ...this.key ? { Authorization: `Bearer ${this.key}` } : {} } });
      if (answer.ok) return answer;
      if (![429, 503].includes(answer.status) || attempt === tries) {
        const problem = await answer.json().catch(() => ({ status: answer.status }));
        throw Object.assign(new Error(problem.detail ?? answer.statusText), { problem });
      }
      await pause(1000 * (Number(answer.headers.get("Retry-After")) || 1));
    }
  }

  async json(method, path, value) {
    const answer = await this.call(method, path, value === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });
    return answer.json();
  }

  /** Uploads a Blob or File in pieces (tus 1.0.0), so that a lost connection costs one piece. Returns the recording's id. */
  async upload(blob, name, onProgress = () => {}) {
    const tus = { "Tus-Resumable": "1.0.0" }, encoded = btoa(String.fromCharCode(...new TextEncoder().encode(name)));
    const made = await this.call("POST", "/v1/uploads", { headers: { ...tus, "Upload-Length": String(blob.size), "Upload-Metadata": `filename ${encoded}` } });
    const address = new URL(made.headers.get("Location"), this.url).href.slice(this.url.length);
    let offset = 0, answer = made;
    for (let losses = 0; offset < blob.size;) {
      onProgress(offset / blob.size);
      try {
        answer = await this.call("PATCH", address, {
          headers: { ...tus, "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream" }, body: blob.slice(offset, offset + pieceBytes), tries: 1,
        });
        losses = 0;
      } catch (error) {
        if (error.problem || ++losses > 5) throw error;
        // The connection was lost; some of the piece may have arrived.
        await pause(500 * 2 ** losses);
        answer = await this.call("HEAD", address, { headers: tus });
      }
      offset = Number(answer.headers.get("Upload-Offset"));
    }
    onProgress(1);
    return answer.headers.get("Stillwave-Recording");
  }

  /** Waits for a job to end, and returns its result. */
  async wait(job, onProgress = () => {}) {
    for (;;) {
      const state = await this.json("GET", `/v1/jobs/${job}?wait=20`);
      onProgress(state.progress);
      if (state.state === "succeeded") return state.result;
      if (["failed", "cancelled"].includes(state.state)) throw Object.assign(new Error(state.error?.detail ?? state.state), { problem: state.error });
    }
  }

  /** Cleans a recording, and returns the result's id. */
  async denoise(recording, options = {}, onProgress = () => {}) {
    const job = await this.json("POST", `/v1/recordings/${recording}/denoise`, options);
    return (await this.wait(job.id, onProgress)).recording;
  }

  /** A token that opens one recording for pages: see docs/embedding.md. */
  async token(recording, seconds = 3600) {
    return (await this.json("POST", "/v1/tokens", { recording, expires_in: seconds })).token;
  }

  async download(recording) { return (await this.call("GET", `/v1/recordings/${recording}/audio`)).blob(); }
}

if (globalThis.process?.argv[1] && import.meta.url.endsWith(process.argv[1].split("/").pop())) {
  const { openAsBlob } = await import("node:fs"), { writeFile } = await import("node:fs/promises"), [source, target] = process.argv.slice(2);
  const service = new Stillwave(process.env.STILLWAVE_URL, process.env.STILLWAVE_KEY);
  const recording = await service.upload(await openAsBlob(source), source.split("/").pop(), share => console.error(`uploading ${Math.round(100 * share)} %`));
  const clean = await service.denoise(recording, { format: target.split(".").pop() }, share => console.error(`cleaning ${Math.round(100 * share)} %`));
  await writeFile(target, Buffer.from(await (await service.download(clean)).arrayBuffer()));
  console.log(clean);
}
