//! The PTX memory accesses of each line of Rust.

use runtime_oracle::Report;
use runtime_oracle::report::{Finding, PtxLine, Space};
use std::collections::HashMap;

/// The accesses of a module, by file and line of the Rust source.
#[derive(Default, Debug)]
pub struct AccessesByLine(HashMap<(String, u32), Vec<PtxLine>>);

impl AccessesByLine {
    /// Reads the accesses of `located`, a module with `.file` and `.loc`. Line numbers refer to
    /// `plain`, the same module without these directives. `plain` is the text that the build embeds
    /// and that `show --ptx` prints.
    pub fn of(located: &str, plain: &str) -> AccessesByLine {
        let (mut files, mut at) = (HashMap::new(), None);
        let mut numbers = (1..).zip(plain.lines()).filter(|(_, line)| !line.trim().is_empty());
        let named = located.lines().filter_map(|line| line.trim().strip_prefix(".file ")?.split_once(' '));
        files.extend(named.map(|(file, name)| (file, name.trim_matches('"'))));
        let mut lines = AccessesByLine::default();
        for line in located.lines().map(str::trim) {
            let mut words = line.split_whitespace();
            match words.next() {
                None | Some(".file") => continue,
                Some(".loc") => {
                    let file = words.next().and_then(|file| files.get(file));
                    at = file.and_then(|file| Some((file.to_string(), words.next()?.parse().ok()?)));
                    continue;
                }
                Some(_) => {}
            }
            // If the two texts are not the same module, no accesses are reported.
            let Some((number, same)) = numbers.next() else { return AccessesByLine::default() };
            if same.trim() != line {
                return AccessesByLine::default();
            }
            if let (Some(at), true) = (&at, accesses(line)) {
                let text = line.trim_end_matches(';').to_string();
                lines.0.entry(at.clone()).or_default().push(PtxLine { line: number, text });
            }
        }
        lines
    }

    /// Adds the PTX lines to each finding about memory.
    pub fn locate(&self, report: &mut Report) {
        report.findings.iter_mut().for_each(|finding| finding.ptx = self.lines_for(finding));
    }

    fn lines_for(&self, finding: &Finding) -> Vec<PtxLine> {
        let place = &finding.place;
        let space = match finding.object.as_ref().map(|object| object.space) {
            Some(Space::Buffer) => ".global",
            Some(Space::Shared) => ".shared",
            Some(Space::Local) | None => return Vec::new(),
        };
        let all = self.0.get(&(place.file.clone(), place.line)).into_iter().flatten();
        all.filter(|line| line.text.contains(space)).cloned().collect()
    }
}

/// Returns whether a line is an instruction that accesses global or shared memory.
fn accesses(line: &str) -> bool {
    let instruction = match line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
        Some((_, instruction)) => instruction,
        None => line,
    };
    ["ld.", "st.", "atom.", "red.", "cp.async"].iter().any(|name| instruction.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_refer_to_the_text_without_locations() {
        let located = ".version 5.0\n.file 1 \"a.rs\"\n.file 2 \"b c.rs\"\n\n{\n    ld.param.f32 %f0, [a];\n    .loc 1 7 0\n    \
             ld.global.f32 %f1, [%rd0];\n    .loc 2 9 0\n    @!%p0 st.shared.f32 [%r0], %f1;\n    bar.sync 0;\n    .loc 1 7 0\n    \
             add.f32 %f2, %f1, %f1;\n    st.global.f32 [%rd0], %f2;\n}\n";
        let plain = ".version 5.0\n{\n    ld.param.f32 %f0, [a];\n    ld.global.f32 %f1, [%rd0];\n    \
             @!%p0 st.shared.f32 [%r0], %f1;\n    bar.sync 0;\n    add.f32 %f2, %f1, %f1;\n    st.global.f32 [%rd0], %f2;\n}\n";
        assert!(AccessesByLine::of(located, &plain.replace("add", "sub")).0.is_empty());
        let lines = AccessesByLine::of(located, plain);
        let of = |file: &str, line| {
            let found = lines.0.get(&(file.to_string(), line)).into_iter().flatten();
            found.map(|line| (line.line, &line.text[..])).collect::<Vec<_>>()
        };
        assert_eq!(of("a.rs", 7), [(4, "ld.global.f32 %f1, [%rd0]"), (8, "st.global.f32 [%rd0], %f2")]);
        assert_eq!(of("b c.rs", 9), [(5, "@!%p0 st.shared.f32 [%r0], %f1")]);
        assert!(of("a.rs", 9).is_empty());
    }
}
