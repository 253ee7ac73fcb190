import Denoise
import Terms
import Waveform
import Workers

// Convert the modules' typed errors into the one above.

func audio<R: ~Copyable>(_ body: () throws(AudioIOError) -> R) throws(ProcessingError) -> R {
  do { return try body() } catch { throw .audio(error) }
}

func media<R: ~Copyable>(_ body: () throws(MediaError) -> R) throws(ProcessingError) -> R {
  do { return try body() } catch { throw .media(error) }
}

func waveform<R: ~Copyable>(_ body: () throws(WaveformError) -> R) throws(ProcessingError) -> R {
  do { return try body() } catch { throw .waveform(error) }
}

func denoise<R: ~Copyable>(_ body: () throws(DenoiseError) -> R) throws(ProcessingError) -> R {
  do { return try body() } catch { throw .denoise(error) }
}
