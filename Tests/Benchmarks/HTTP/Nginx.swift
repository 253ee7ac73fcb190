import Foundation

/// nginx with a worker per core, a buffered access log, and files kept open: the baseline for the HTTP server.
final class Nginx {
  let port: UInt16
  let folder: String
  private let process = Process()

  /// nil if nginx isn't installed. Serves the files of `folder`.
  init?(folder: String) throws {
    let program = ["/usr/sbin/nginx", "/usr/bin/nginx"].first { FileManager.default.isExecutableFile(atPath: $0) }
    guard let program else { return nil }
    self.folder = folder
    port = try Client.freePort()
    let cores = ProcessInfo.processInfo.processorCount
    let configuration = """
      daemon off;
      worker_processes \(cores);
      worker_rlimit_nofile 20000;
      pid \(folder)/nginx.pid;
      error_log \(folder)/nginx.log crit;
      events { worker_connections 9000; }
      http {
        access_log \(folder)/access.log combined buffer=64k flush=1s;
        sendfile on;
        tcp_nopush on;
        keepalive_requests 1000000000;
        open_file_cache max=100;
        default_type application/json;
        client_body_temp_path \(folder)/nginx-body;
        proxy_temp_path \(folder)/nginx-proxy;
        fastcgi_temp_path \(folder)/nginx-fastcgi;
        uwsgi_temp_path \(folder)/nginx-uwsgi;
        scgi_temp_path \(folder)/nginx-scgi;
        server {
          listen 127.0.0.1:\(port) backlog=1024;
          root \(folder);
          # With nginx's own size of the body buffer, 16 KB, an upload takes twice its processor time.
          location /uploads/ {
            dav_methods PUT;
            create_full_put_path on;
            client_max_body_size 0;
            client_body_buffer_size 1m;
          }
        }
      }
      """
    try configuration.write(toFile: "\(folder)/nginx.conf", atomically: true, encoding: .utf8)
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = ["-c", "\(folder)/nginx.conf", "-e", "\(folder)/nginx.log"]
    if getuid() == 0 { process.arguments?.append(contentsOf: ["-g", "user root;"]) }
    try process.run()
    try Client(port: port).waitUntilItAnswers()
  }

  var client: Client { Client(port: port) }

  /// The master and its workers.
  var processes: [Int32] { [process.processIdentifier] + Processes.children(of: process.processIdentifier) }

  func stop() {
    process.terminate()
    process.waitUntilExit()
  }
}
