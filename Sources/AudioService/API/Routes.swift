import HTTP

/// The whole API as one table, in the order of openapi.yaml. A test compares the two.
func routes(_ context: Context) -> [ServiceRoute] {
  let uploads = DirectUploads(context: context)
  let recordings = Recordings(context: context)
  let waveforms = Waveforms(context: context)
  let pictures = WaveformPictures(context: context)
  let spectrograms = Spectrograms(context: context)
  let audio = AudioFiles(context: context)
  let denoise = DenoiseRequests(context: context)
  let noiseRegions = NoiseRegions(context: context)
  let trim = TrimRequests(context: context)
  let loudness = LoudnessRequests(context: context)
  let listEvents = ListEvents(context: context)
  let previews = DenoisePreviews(context: context)
  let spectra = Spectra(context: context)
  let labels = LabelTracks(context: context)
  let noiseProfiles = NoiseProfiles(context: context)
  let resumable = ResumableUploads(context: context)
  let jobs = JobRequests(context: context)
  let events = JobEvents(context: context)
  let batches = BatchRequests(context: context)
  let tokens = TokenRequests(context: context)
  let usage = UsageRequests(context: context)
  let operations = Operations(context: context)
  let base = context.configuration.basePath
  let pages = PublicPages(context.configuration, mediaOrigin: context.redirects?.origin)
  return [
    ServiceRoute(.post, "/v1/recordings", .newUpload, uploads.create),
    ServiceRoute(.get, "/v1/recordings", .key(.read), recordings.list),
    ServiceRoute(.get, "/v1/recordings/{id}", .recording(.read), atOnce: recordings.read),
    ServiceRoute(.patch, "/v1/recordings/{id}", .recording(.write), recordings.rename),
    ServiceRoute(.delete, "/v1/recordings/{id}", .recording(.delete), recordings.delete),
    ServiceRoute(.get, "/v1/recordings/{id}/audio", .recording(.read), atOnce: audio.read),
    ServiceRoute(.get, "/v1/recordings/{id}/video", .recording(.read), atOnce: audio.video),
    ServiceRoute(.get, "/v1/recordings/{id}/cover", .recording(.read), audio.cover),
    ServiceRoute(.get, "/v1/recordings/{id}/waveform", .recording(.read), atOnce: waveforms.slice),
    ServiceRoute(.post, "/v1/recordings/{id}/waveform", .key(.write), recordings.rebuildWaveform),
    ServiceRoute(.get, "/v1/recordings/{id}/waveform.dat", .recording(.read), atOnce: waveforms.dat),
    ServiceRoute(.get, "/v1/recordings/{id}/waveform.points", .recording(.read), atOnce: waveforms.points),
    ServiceRoute(.get, "/v1/recordings/{id}/waveform.json", .recording(.read), atOnce: waveforms.strictJSON),
    ServiceRoute(.get, "/v1/recordings/{id}/peaks.json", .recording(.read), atOnce: waveforms.peaks),
    ServiceRoute(.get, "/v1/recordings/{id}/waveform.png", .recording(.read), pictures.png),
    ServiceRoute(.get, "/v1/recordings/{id}/waveform.svg", .recording(.read), pictures.svg),
    ServiceRoute(.get, "/v1/recordings/{id}/spectrogram", .recording(.read), spectrograms.values),
    ServiceRoute(.get, "/v1/recordings/{id}/spectrogram.png", .recording(.read), spectrograms.png),
    ServiceRoute(.get, "/v1/methods", .key(.read), denoise.methods),
    ServiceRoute(.post, "/v1/recordings/{id}/denoise", .key(.write), denoise.create),
    ServiceRoute(.post, "/v1/recordings/{id}/denoise/preview", .key(.write), previews.create),
    ServiceRoute(.get, "/v1/recordings/{id}/noise-regions", .key(.read), noiseRegions.list),
    ServiceRoute(.get, "/v1/recordings/{id}/spectrum", .key(.read), spectra.read),
    ServiceRoute(.get, "/v1/recordings/{id}/loudness", .key(.read), loudness.read),
    ServiceRoute(.post, "/v1/recordings/{id}/trim", .key(.write), trim.create),
    ServiceRoute(.get, "/v1/recordings/{id}/labels", .recording(.read), labels.list),
    ServiceRoute(.post, "/v1/recordings/{id}/labels", .recording(.write), labels.create),
    ServiceRoute(.get, "/v1/recordings/{id}/labels/{track}", .recording(.read), labels.read),
    ServiceRoute(.put, "/v1/recordings/{id}/labels/{track}", .recording(.write), labels.replace),
    ServiceRoute(.patch, "/v1/recordings/{id}/labels/{track}", .recording(.write), labels.change),
    ServiceRoute(.delete, "/v1/recordings/{id}/labels/{track}", .recording(.delete), labels.delete),
    ServiceRoute(.post, "/v1/noise-profiles", .key(.write), noiseProfiles.create),
    ServiceRoute(.get, "/v1/noise-profiles", .key(.read), noiseProfiles.list),
    ServiceRoute(.get, "/v1/noise-profiles/{id}", .key(.read), noiseProfiles.read),
    ServiceRoute(.patch, "/v1/noise-profiles/{id}", .key(.write), noiseProfiles.rename),
    ServiceRoute(.delete, "/v1/noise-profiles/{id}", .key(.delete), noiseProfiles.delete),
    ServiceRoute(.options, "/v1/uploads", .everyone, resumable.describe),
    ServiceRoute(.post, "/v1/uploads", .newUpload, resumable.create),
    ServiceRoute(.head, "/v1/uploads/{id}", .upload, resumable.serve),
    ServiceRoute(.patch, "/v1/uploads/{id}", .upload, resumable.serve),
    ServiceRoute(.delete, "/v1/uploads/{id}", .upload, resumable.serve),
    ServiceRoute(.post, "/v1/uploads/{id}", .upload, resumable.serve),
    ServiceRoute(.get, "/v1/jobs", .key(.read), jobs.list),
    ServiceRoute(.get, "/v1/jobs/{id}", .key(.read), atOnce: jobs.read),
    ServiceRoute(.delete, "/v1/jobs/{id}", .key(.delete), jobs.cancel),
    ServiceRoute(.get, "/v1/jobs/{id}/events", .jobEvents, events.stream),
    ServiceRoute(.post, "/v1/batches", .key(.write), batches.create),
    ServiceRoute(.get, "/v1/batches", .key(.read), batches.list),
    ServiceRoute(.get, "/v1/batches/{id}", .key(.read), batches.read),
    ServiceRoute(.delete, "/v1/batches/{id}", .key(.delete), batches.cancel),
    ServiceRoute(.get, "/v1/batches/{id}/jobs", .key(.read), batches.jobs),
    ServiceRoute(.get, "/v1/batches/{id}/events", .key(.read), batches.events),
    ServiceRoute(.get, "/v1/events", .key(.read), listEvents.stream),
    ServiceRoute(.post, "/v1/tokens", .anyKey, tokens.create),
    ServiceRoute(.get, "/v1/usage", .key(.read), usage.read),
    ServiceRoute(.get, "/healthz", open: operations.health),
    ServiceRoute(.get, "/readyz", operators: operations.readiness),
    ServiceRoute(.get, "/metrics", operators: operations.metrics),
    ServiceRoute(.get, "/openapi.yaml", open: operations.openAPI),
    ServiceRoute(.get, "/problems/{code}", open: { try ProblemPages.read(at: base, $0, $1) }),
    ServiceRoute(.get, "/", open: operations.page),
    ServiceRoute(.get, "/docs", open: pages.docs),
    ServiceRoute(.get, "/embed", open: pages.embed),
    ServiceRoute(.get, "/embed/{file}", open: pages.script),
    ServiceRoute(.get, "/oembed", open: pages.oEmbed),
  ]
}
