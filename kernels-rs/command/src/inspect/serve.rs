//! A server of the page on this machine, which follows the source file.
//!
//! The page requests changes several times a second. At each request, the server looks at the file.
//! If the file has changed, the front end of the compiler reads it, without cargo. The first answer
//! has IR and PTX. A thread then adds machine code and measurements, which take longer: meanwhile
//! the server continues to follow the file.

use super::model::Inspection;
use super::page::{self, Updates};
use super::{Depth, Error, InspectArgs, source_file};
use crate::error::CommandOutcome;
use crate::name::SelectedInstance;
use kernel_dsl::compiler::hir::Program;
use kernel_dsl::compiler::{Errors, source_file as front_end};
use std::fs;
use std::io::Write;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;
use std::time::SystemTime;
use tiny_http::{Header, Request, Response};

/// A server and the inspection that it shows.
pub(super) struct Server<'a> {
    inspect: &'a InspectArgs,
    selected: SelectedInstance,
    /// The program as rustc compiled it.
    linked: Program,
    file: PathBuf,
    /// The state of the file that the inspection shows.
    seen: Option<FileState>,
    inspection: Inspection,
    /// The program of an inspection without machine code and measurements, until a thread examines
    /// them.
    incomplete: Option<Program>,
    /// Number of the inspection; each change increments it.
    version: u64,
}

/// State of a file, by which changes are noticed.
#[derive(PartialEq, Eq)]
struct FileState {
    modified: SystemTime,
    bytes: u64,
}

impl<'a> Server<'a> {
    /// Examines the instance as rustc compiled it.
    pub(super) fn new(
        inspect: &'a InspectArgs,
        selected: SelectedInstance,
        linked: Program,
    ) -> Result<Server<'a>, crate::error::Error> {
        if let Some(file) = &inspect.source {
            // A file that cannot be followed would show nothing, and no reason.
            crate::text_file::read(file).map_err(|source| Error::Read { file: file.clone(), source })?;
        }
        let of_artifact = || source_file(selected.artifact);
        let file = inspect.source.clone().or_else(of_artifact);
        let file = file.ok_or_else(|| Error::NoSource { file: selected.artifact.file.to_string() })?;
        let inspection = inspect.inspect(&selected, &linked, Depth::Complete)?;
        let mut server =
            Server { inspect, selected, linked, file, seen: None, inspection, incomplete: None, version: 0 };
        // The file may be newer than the program.
        server.follow();
        Ok(server)
    }

    /// Serves until the process ends.
    pub(super) fn run(mut self, out: &mut dyn Write) -> Result<CommandOutcome, crate::error::Error> {
        let port = self.inspect.port;
        let served = tiny_http::Server::http(("127.0.0.1", port));
        let server = served.map_err(|e| Error::Serve { port, message: e.to_string() })?;
        writeln!(out, "http://{} follows {}; Ctrl-C stops it", server.server_addr(), self.file.display())?;
        out.flush()?;
        thread::scope(|scope| {
            // One at a time: a program that is saved meanwhile waits.
            let mut examination: Option<(u64, thread::ScopedJoinHandle<Result<Inspection, String>>)> = None;
            for request in server.incoming_requests() {
                if let Some((version, examined)) = examination.take_if(|(_, thread)| thread.is_finished()) {
                    let examined = examined.join().unwrap_or_else(|panic| resume_unwind(panic));
                    if version == self.version {
                        self.show(examined);
                    }
                }
                // A reader that closes its connection is not an error of the server.
                let _ = self.answer(request);
                if examination.is_none() {
                    let (inspect, selected) = (self.inspect, self.selected.clone());
                    examination = self.incomplete.take().map(|program| {
                        let examine = move || inspect.inspect(&selected, &program, Depth::Complete);
                        (self.version, scope.spawn(move || examine().map_err(|e| e.to_string())))
                    });
                }
            }
        });
        Ok(CommandOutcome::Success)
    }

    fn answer(&mut self, request: Request) -> std::io::Result<()> {
        let mut hosts = request.headers().iter().filter(|header| header.field.equiv("Host"));
        if !hosts.all(|host| is_of_this_machine(host.value.as_str())) {
            let why = "this server answers requests to 127.0.0.1 and localhost only";
            return request.respond(Response::from_string(why).with_status_code(403));
        }
        let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
        match path {
            "/" => {
                self.follow();
                let page = page::of(&self.inspection, Updates::Served { version: self.version });
                request.respond(text(page, "text/html; charset=utf-8"))
            }
            "/changes" => {
                let shown: Option<u64> = query.parse().ok();
                self.follow();
                let json = match shown == Some(self.version) {
                    true => format!("{{\"version\":{}}}", self.version),
                    false => format!("{{\"version\":{},\"model\":{}}}", self.version, page::json(&self.inspection)),
                };
                request.respond(text(json, "application/json"))
            }
            _ => request.respond(Response::from_string("not found").with_status_code(404)),
        }
    }

    /// Examines the file if it has changed.
    fn follow(&mut self) {
        let seen =
            fs::metadata(&self.file).and_then(|data| Ok(FileState { modified: data.modified()?, bytes: data.len() }));
        // An editor may replace or truncate the file: it is then missing or empty for a moment.
        let Some(seen) = seen.ok().filter(|seen| seen.bytes > 0) else { return };
        if self.seen.as_ref() != Some(&seen) {
            let first = self.seen.is_none();
            self.seen = Some(seen);
            // The page already shows the text that the program was compiled from.
            if !(first && self.is_linked()) {
                self.compile();
            }
        }
    }

    /// Returns whether the file holds the text of the kernel as rustc compiled it.
    fn is_linked(&self) -> bool {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let compiled = self.linked.functions.iter().filter(|f| f.source.file == self.selected.artifact.file);
        { compiled }.all(|f| text.contains(&f.source.text.join("\n")))
    }

    /// Reads and compiles the file.
    fn compile(&mut self) {
        let read = fs::read_to_string(&self.file).map_err(|source| Error::Read { file: self.file.clone(), source });
        let compiled = read.map_err(crate::error::Error::from).and_then(|text| {
            let program = self.program(&text).map_err(|source| crate::error::Error::Compile {
                instance: self.selected.name(),
                target: self.inspect.target.unwrap_or(self.selected.artifact.target),
                source,
            })?;
            Ok((self.inspect.inspect(&self.selected, &program, Depth::Compiled)?, program))
        });
        let (inspection, program) = match compiled {
            Ok((inspection, program)) => (Ok(inspection), Some(program)),
            Err(e) => (Err(e.to_string()), None),
        };
        self.incomplete = program;
        self.show(inspection);
    }

    /// Shows an inspection. If the source has mistakes, the page keeps the last inspection and
    /// shows the mistakes.
    fn show(&mut self, examined: Result<Inspection, String>) {
        self.version += 1;
        match examined {
            Ok(inspection) => self.inspection = inspection,
            Err(mistakes) => self.inspection.error = Some(mistakes),
        }
    }

    /// Reads the kernel from its file's text.
    fn program(&self, text: &str) -> Result<Program, Errors> {
        let artifact = self.selected.artifact;
        // In a new thread, because the front end keeps the positions of all text that a thread has
        // read.
        thread::scope(|scope| {
            let read = scope.spawn(|| front_end::program(text, artifact.file, artifact.name, &self.linked));
            read.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

/// Returns whether the Host header of a request names this machine. A page of another site that
/// resolves its name to this machine could read the source otherwise (DNS rebinding).
fn is_of_this_machine(host: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Returns a response that no cache keeps.
fn text(body: String, media_type: &str) -> Response<std::io::Cursor<Vec<u8>>> {
    let headers = [("Content-Type", media_type), ("Cache-Control", "no-store")];
    let headers = headers.into_iter().filter_map(|(name, value)| Header::from_bytes(name, value).ok());
    headers.fold(Response::from_string(body), |response, header| response.with_header(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in ["127.0.0.1:8000", "localhost", "LocalHost:80", "[::1]:9", "127.0.0.1"] {
            assert!(is_of_this_machine(host), "{host}");
        }
        for host in ["example.com", "example.com:8000", "127.0.0.1.example.com", "localhost:x", "", "127.0.0.1:80:90"] {
            assert!(!is_of_this_machine(host), "{host}");
        }
    }
}
