import HTTP

/// The whole API as one table, in the order of openapi.yaml. A test compares the two.
func routes(_ context: Context) -> [Route] {
  let uploads = DirectUploads(context: context)
  let recordings = Recordings(context: context)
  let waveforms = Waveforms(context: context)
  let pictures = WaveformPictures(context: context)
  let audio = AudioFiles(context: context)
  let denoise = DenoiseRequests(context: context)
  let noiseRegions = NoiseRegions(context: context)
  let previews = DenoisePreviews(context: context)
  let spectra = Spectra(context: context)
  let labels = LabelTracks(context: context)
  let resumable = ResumableUploads(context: context)
  let jobs = JobRequests(context: context)
  let events = JobEvents(context: context)
  let operations = Operations(context: context)
  let base = context.configuration.basePath
  return [
    Route(.post, "/v1/recordings", uploads.create),
    Route(.get, "/v1/recordings", recordings.list),
    Route(.get, "/v1/recordings/{id}", atOnce: recordings.read),
    Route(.patch, "/v1/recordings/{id}", recordings.rename),
    Route(.delete, "/v1/recordings/{id}", recordings.delete),
    Route(.get, "/v1/recordings/{id}/audio", audio.read),
    Route(.get, "/v1/recordings/{id}/video", audio.video),
    Route(.get, "/v1/recordings/{id}/waveform", atOnce: waveforms.slice),
    Route(.post, "/v1/recordings/{id}/waveform", recordings.rebuildWaveform),
    Route(.get, "/v1/recordings/{id}/waveform.dat", atOnce: waveforms.dat),
    Route(.get, "/v1/recordings/{id}/waveform.json", atOnce: waveforms.strictJSON),
    Route(.get, "/v1/recordings/{id}/peaks.json", atOnce: waveforms.peaks),
    Route(.get, "/v1/recordings/{id}/waveform.png", pictures.png),
    Route(.get, "/v1/recordings/{id}/waveform.svg", pictures.svg),
    Route(.post, "/v1/recordings/{id}/denoise", denoise.create),
    Route(.post, "/v1/recordings/{id}/denoise/preview", previews.create),
    Route(.get, "/v1/recordings/{id}/noise-regions", noiseRegions.list),
    Route(.get, "/v1/recordings/{id}/spectrum", spectra.read),
    Route(.get, "/v1/recordings/{id}/labels", labels.list),
    Route(.post, "/v1/recordings/{id}/labels", labels.create),
    Route(.get, "/v1/recordings/{id}/labels/{track}", labels.read),
    Route(.put, "/v1/recordings/{id}/labels/{track}", labels.replace),
    Route(.patch, "/v1/recordings/{id}/labels/{track}", labels.change),
    Route(.delete, "/v1/recordings/{id}/labels/{track}", labels.delete),
    Route(.options, "/v1/uploads", resumable.describe),
    Route(.post, "/v1/uploads", resumable.create),
    Route(.head, "/v1/uploads/{id}", resumable.serve),
    Route(.patch, "/v1/uploads/{id}", resumable.serve),
    Route(.delete, "/v1/uploads/{id}", resumable.serve),
    Route(.post, "/v1/uploads/{id}", resumable.serve),
    Route(.get, "/v1/jobs", jobs.list),
    Route(.get, "/v1/jobs/{id}", atOnce: jobs.read),
    Route(.delete, "/v1/jobs/{id}", jobs.cancel),
    Route(.get, "/v1/jobs/{id}/events", events.stream),
    Route(.get, "/healthz", operations.health),
    Route(.get, "/readyz", operations.readiness),
    Route(.get, "/metrics", operations.metrics),
    Route(.get, "/openapi.yaml", operations.openAPI),
    Route(.get, "/problems/{code}", atOnce: { try ProblemPages.read(at: base, $0, $1) }),
    Route(.get, "/", operations.page),
  ]
}
