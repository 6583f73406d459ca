#!/usr/bin/env python3
"""Measures over HTTP/2 through other people's servers, plain and over TLS, and compares with what HTTP/1.1 gives.

    tools/check-http2.py PATH-TO-tailbound [PEER...]

Each peer (nghttpx, nginx, haproxy: in front of the emulator; node, hypercorn: answering by themselves) that is installed is asked the same
requests: short ones, some with bodies larger than a window of HTTP/2, some at a connection's end of life. Every one must succeed, with
the tokens that the server counted. With CI=true, nghttpx, nginx and haproxy must be there.
"""

import json, os, shutil, socket, subprocess, sys, tempfile, time

PEERS = ["nghttpx", "nginx", "haproxy", "node", "hypercorn"]
MUST = ["nghttpx", "nginx", "haproxy"]

# A completions stream of five tokens, and of what was asked only its length.
NODE = """
const http2 = require('http2'), fs = require('fs');
const answer = (stream, headers) => {
  let length = 0;
  stream.on('error', () => {});
  stream.on('data', (d) => { length += d.length; });
  stream.on('end', () => {
    if (+headers['content-length'] !== length) return stream.respond({ ':status': 400 }, { endStream: true });
    stream.respond({ ':status': 200, 'content-type': 'text/event-stream' });
    const event = (o) => stream.write(`data: ${JSON.stringify(o)}\\n\\n`);
    let n = 0;
    const timer = setInterval(() => {
      if (n < 5) return event({ choices: [{ index: 0, text: `w${n++} `, finish_reason: n === 5 ? 'length' : null }] });
      clearInterval(timer);
      event({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 5 } });
      stream.end('data: [DONE]\\n\\n');
    }, 2);
  });
};
const [plain, tls, key, cert] = process.argv.slice(2);
http2.createServer().on('stream', answer).listen(+plain, '127.0.0.1');
http2.createSecureServer({ key: fs.readFileSync(key), cert: fs.readFileSync(cert) }).on('stream', answer).listen(+tls, '127.0.0.1');
"""

ASGI = """
import asyncio, json
async def app(scope, receive, send):
    if scope["type"] != "http": return
    assert scope["http_version"] == "2", scope["http_version"]
    length, more = 0, True
    while more:
        message = await receive()
        length += len(message.get("body", b"")); more = message.get("more_body", False)
    stated = dict(scope["headers"]).get(b"content-length", b"0")
    await send({"type": "http.response.start", "status": 200 if int(stated) == length else 400,
                "headers": [(b"content-type", b"text/event-stream")]})
    async def event(o): await send({"type": "http.response.body", "body": b"data: " + json.dumps(o).encode() + b"\\n\\n", "more_body": True})
    for n in range(5):
        await event({"choices": [{"index": 0, "text": f"w{n} ", "finish_reason": "length" if n == 4 else None}]})
        await asyncio.sleep(0.002)
    await event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}})
    await send({"type": "http.response.body", "body": b"data: [DONE]\\n\\n"})
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


class Started:
    """Processes that end with the check."""

    def __init__(self):
        self.all = []

    def __call__(self, *args, **more):
        process = subprocess.Popen(args, stdin=subprocess.DEVNULL, **more)
        self.all.append(process)
        return process

    def end(self):
        for process in reversed(self.all):
            process.terminate()
        for process in self.all:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def peer(name, start, work, backend, key, cert):
    """Starts it; its plain and its TLS port."""
    plain, tls = free_port(), free_port()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": open(f"{work}/{name}.log", "w")}

    def write(file, text):
        with open(f"{work}/{file}", "w") as out:
            out.write(text)
        return out.name

    if name == "nghttpx":
        start("nghttpx", "--conf=/dev/null", "--no-ocsp", "--workers=1", f"--backend=127.0.0.1,{backend}",
              f"--frontend=127.0.0.1,{plain};no-tls", f"--frontend=127.0.0.1,{tls}", "--accesslog-file=/dev/null", key, cert, **quiet)
    elif name == "nginx":
        # Twenty requests a connection: then it says goodbye.
        conf = write("nginx.conf", f"""
            daemon off; master_process off; pid {work}/nginx.pid; error_log stderr; worker_rlimit_nofile 4096;
            events {{ worker_connections 1024; }}
            http {{ access_log off; client_body_temp_path {work}/body; proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/f;
                uwsgi_temp_path {work}/u; scgi_temp_path {work}/s; keepalive_requests 20; client_max_body_size 100m;
                server {{ listen 127.0.0.1:{plain} http2; listen 127.0.0.1:{tls} ssl http2;
                    ssl_certificate {cert}; ssl_certificate_key {key};
                    location / {{ proxy_pass http://127.0.0.1:{backend}; proxy_buffering off; proxy_http_version 1.1; }} }} }}""")
        start("nginx", "-p", work, "-c", conf, **quiet)
    elif name == "haproxy":
        with open(f"{work}/both.pem", "w") as both:
            both.write(open(cert).read() + open(key).read())
        conf = write("haproxy.cfg", f"""
defaults
    mode http
    timeout client 60s
    timeout server 60s
    timeout connect 5s
frontend f
    bind 127.0.0.1:{plain} proto h2
    bind 127.0.0.1:{tls} ssl crt {work}/both.pem alpn h2
    default_backend b
backend b
    server s 127.0.0.1:{backend}
""")
        start("haproxy", "-f", conf, "-db", **quiet)
    elif name == "node":
        start("node", write("peer.js", NODE), str(plain), str(tls), key, cert, **quiet)
    elif name == "hypercorn":
        write("peer_app.py", ASGI)
        start(sys.executable, "-m", "hypercorn", "--insecure-bind", f"127.0.0.1:{plain}", "--bind", f"127.0.0.1:{tls}",
              "--keyfile", key, "--certfile", cert, "peer_app:app", cwd=work, **quiet)
    wait_for(plain)
    wait_for(tls)
    return plain, tls


def installed(name):
    if name == "hypercorn":
        return subprocess.run([sys.executable, "-c", "import hypercorn, h2"], capture_output=True).returncode == 0
    return shutil.which(name) is not None


def measure(tailbound, work, url, *flags):
    args = [tailbound, "bench", "serve", "--base-url", url, "--dataset-name", "random", "--skip-tokenizer-init",
            "--random-output-len", "16", "--save-result", "--save-detailed", "--result-dir", work, "--result-filename", "result.json",
            "--no-fail", *flags]
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(args)}\n{done.stdout}{done.stderr}")
    with open(f"{work}/result.json") as file:
        return done.stdout, json.load(file)


def main():
    tailbound, *names = sys.argv[1:]
    start = Started()
    work = tempfile.mkdtemp()
    try:
        key, cert = f"{work}/key.pem", f"{work}/cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-addext", "basicConstraints=critical,CA:FALSE"], check=True, capture_output=True)
        emulator = start(tailbound, "emulate", "--port", "0", "--step-time", "2ms", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = next(line for line in emulator.stdout if line.startswith("listening on "))
        backend = int(line.rsplit(":", 1)[1])
        loads = {
            "60 requests, 4 at a time": (60, ["--num-prompts", "60", "--max-concurrency", "4", "--random-input-len", "50"]),
            "6 with 300 kB bodies": (6, ["--num-prompts", "6", "--max-concurrency", "2", "--random-input-len", "60000"]),
            "at 100/s, 4 connections ahead": (50, ["--num-prompts", "50", "--request-rate", "100", "--random-input-len", "50", "--preconnect", "4",
                                                   "--ready-check-timeout-sec", "10"]),
        }
        for name in names or PEERS:
            if not installed(name):
                if name in MUST and os.environ.get("CI") == "true":
                    sys.exit(f"{name} is not installed")
                print(f"skipped: {name} is not installed")
                continue
            plain, tls = peer(name, start, work, backend, key, cert)
            by_itself = name in ("node", "hypercorn")
            model = ["--model", "m"] if by_itself else []  # the others are asked, over HTTP/2
            for url, more in [(f"http://127.0.0.1:{plain}", []), (f"https://localhost:{tls}", ["--cacert", cert])]:
                for what, (count, flags) in loads.items():
                    text, result = measure(tailbound, work, url, "--http2", *model, *more, *flags)
                    own = result["tailbound"]
                    assert own["protocol"] == "HTTP/2" and "HTTP/2" in text, own.get("protocol")
                    assert result["completed"] == count and result["failed"] == 0, (name, url, what, result["errors"])
                    tokens = 5 if by_itself else 16
                    assert result["output_lens"] == [tokens] * count, (name, url, what, result["output_lens"])
                    assert all(len(gaps) == tokens - 1 for gaps in result["itls"]), (name, url, what)
                    kind = "TLS" if more else "plain"
                    print(f"{name}, {kind}, {what}: all answered; median TTFT {result['median_ttft_ms']:.2f} ms, ITL {result['median_itl_ms']:.2f} ms, "
                          f"{own['requests']['retries']} sent again")
        for what, (_, flags) in loads.items():
            _, result = measure(tailbound, work, f"http://127.0.0.1:{backend}", *flags)
            print(f"beside: the emulator itself over {result['tailbound']['protocol']}, {what}: median TTFT {result['median_ttft_ms']:.2f} ms, "
                  f"ITL {result['median_itl_ms']:.2f} ms")
    finally:
        start.end()
        shutil.rmtree(work, ignore_errors=True)


main()
