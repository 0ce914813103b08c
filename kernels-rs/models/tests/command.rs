//! The command `models` as a shell runs it: outputs that cannot be written, exit codes, options.

#[path = "support/small.rs"]
mod small;
mod support;

use half::f16;
use small::{small, small_chat_model, with_last_embedding};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Returns the command with some arguments.
fn models(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_models"));
    command.args(arguments);
    command
}

/// Runs the command with a text as its input. Returns the exit code, the output and the messages.
fn run_with_input(arguments: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    let mut command = models(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that does not read its input closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (status.code(), stdout, stderr)
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    run_with_input(arguments, b"")
}

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Writes the output of commands to a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_output_is_an_error() {
    let file = small_chat_model("full-output", 120, true);
    let file = file.to_str().unwrap();
    let cpu = ["--device", "cpu"];
    for arguments in [
        &["fit", file][..],
        &["inspect", file],
        &["inspect", file, "--json"],
        &["tokenize", file, "a text"],
        &["generate", file, "--prompt", "a\n", "--max-tokens", "2", cpu[0], cpu[1]],
        &["chat", file, "--max-tokens", "2", cpu[0], cpu[1]],
        &["serve", file, "--port", "0", cpu[0], cpu[1]],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut child = models(arguments).stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        // A command that does not read its input closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(b"a message\n");
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains("error: cannot write to the standard output: No space left"), "{arguments:?}: {error}");
    }
}

/// Closes the pipe of the output after the first bytes, as `head` does.
#[cfg(unix)]
#[test]
fn a_closed_output_ends_the_command() {
    let file = small_chat_model("closed-output", 4000, false);
    let file = file.to_str().unwrap();
    for arguments in [&["generate", file, "--prompt", "List:\n"][..], &["chat", file]] {
        let mut command = models(&[arguments, &["--device", "cpu", "--max-tokens", "3000"]].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"a message\nanother\n").unwrap();
        let mut output = child.stdout.take().unwrap();
        std::io::Read::read_exact(&mut output, &mut [0]).unwrap();
        drop(output);
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
        assert_eq!(error.matches("ended by the reader of the output").count(), 1, "{arguments:?}: {error}");
        assert!(!error.contains("panicked"), "{arguments:?}: {error}");
    }
}

/// Gives options numbers outside their ranges. No model is read before the options.
#[test]
fn numbers_outside_their_ranges_are_refused() {
    let generate = ["generate", "absent.gguf", "--prompt", "a"];
    let (chat, serve) = (["chat", "absent.gguf"], ["serve", "absent.gguf"]);
    let (perplexity, fit) = (["perplexity", "absent.gguf", "absent.txt"], ["fit", "absent.gguf"]);
    let (compare, bench) = (["compare", "absent.gguf", "absent.gguf"], ["bench", "absent.gguf"]);
    for (command, option, wrong, expected) in [
        (&generate[..], "--max-tokens", "0", "1 or more"),
        (&generate, "--max-tokens", "-1", "1 or more"),
        (&generate, "--seed", "-1", "0 or more"),
        (&generate, "--top-k", "x", "0 or more"),
        (&serve, "--queue", "-1", "0 or more"),
        (&serve, "--host", "example.com", "expected an IP address, such as 127.0.0.1 or ::1, or localhost"),
        (&generate, "--ctx-size", "1", "2 or more"),
        (&generate, "--drafts", "16", "from 0 to 15"),
        (&chat, "--max-tokens", "0", "1 or more"),
        (&chat, "--image-tokens", "0", "1 or more"),
        (&serve, "--ctx-size", "0", "2 or more"),
        (&serve, "--sequences", "17", "from 1 to 16"),
        (&serve, "--sequences", "0", "from 1 to 16"),
        (&perplexity, "--window", "1", "2 or more"),
        (&compare, "--sequences", "0", "1 or more"),
        (&compare, "--tokens", "0", "1 or more"),
        (&bench, "--prompt", "0", "1 or more"),
        (&bench, "--generate", "0", "1 or more"),
        (&bench, "--sequences", "0", "from 1 to 16"),
        (&bench, "--depth", "-1", "0 or more"),
        (&serve, "--port", "-1", "0..=65535"),
        (&fit, "--tokens", "0", "1 or more"),
        (&fit, "--sequences", "17", "from 1 to 16"),
        (&fit, "--chunk-size", "0", "1 or more"),
    ] {
        let (code, _, error) = run(&[command, &[option, wrong]].concat());
        let names_the_option = error.contains(&format!("invalid value '{wrong}' for '{option}"));
        assert!(names_the_option && error.contains(expected), "{command:?} {option}: {error}");
        assert_eq!(code, Some(2));
    }
}

/// Sends a line in Latin-1 between two messages.
#[test]
fn a_message_that_is_not_utf8_is_an_error() {
    let file = small_chat_model("latin", 120, true);
    let arguments = ["chat", file.to_str().unwrap(), "--device", "cpu", "--max-tokens", "2"];
    let (code, _, error) = run_with_input(&arguments, b"Hi\ncaf\xe9\nBye\n");
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("error: cannot read the standard input: "), "{error}");
    assert_eq!(error.matches("prompt ").count(), 1, "{error}");
}

/// Sends a message that exceeds the context between two that fit.
#[test]
fn a_message_that_does_not_fit_is_dropped() {
    let file = small_chat_model("long-message", 120, true);
    let file = file.to_str().unwrap();
    let cpu = ["--device", "cpu", "--max-tokens", "2"];
    let input = format!("Hi\n{}\nBye\n", "x".repeat(200));
    let (code, _, error) = run_with_input(&[&["chat", file][..], &cpu].concat(), input.as_bytes());
    assert_eq!(error.lines().filter(|line| line.starts_with("prompt ")).count(), 2, "{error}");
    assert!(error.contains("tokens; the context size is 120 for prompt and answer together; --ctx-size"), "{error}");
    assert!(error.contains("; the message is dropped\n"), "{error}");
    assert!(error.ends_with("error: cannot answer all messages: the number of dropped messages is 1\n"), "{error}");
    assert_eq!(code, Some(1));
}

/// Sets a context that the prompt fills.
#[test]
fn a_prompt_that_fills_the_context_is_refused() {
    let file = small_chat_model("full-context", 120, true);
    let generate = ["generate", file.to_str().unwrap(), "--prompt", "abcd", "--device", "cpu", "--ctx-size", "4"];
    let (code, output, error) = run(&generate);
    assert_eq!((code, output.as_str()), (Some(1), ""));
    assert!(error.contains("found 4 tokens; the context size is 4 "), "{error}");
}

/// Interrupts a prompt of many chunks, long before its end.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_prompt() {
    let file = small_chat_model("interrupted-prompt", 100_000, false);
    let prompt = "a ".repeat(10_000);
    let arguments = ["generate", file.to_str().unwrap(), "--prompt", &prompt, "--device", "cpu", "--ctx-size", "30000"];
    let mut child = models(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The command prints the text when it begins to compute the prompt.
    let mut output = BufReader::new(child.stdout.take().unwrap());
    assert!(output.fill_buf().unwrap().starts_with(b"a a"));
    let reader = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()).unwrap());
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(reader.join().unwrap(), 20_001);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("prompt interrupted after"), "{error}");
}

/// Gives options values that begin with a hyphen: negative numbers and texts.
#[test]
fn values_may_begin_with_a_hyphen() {
    let file = small_chat_model("hyphens", 120, true);
    let file = file.to_str().unwrap();
    let cpu = ["--device", "cpu", "--max-tokens", "2"];
    let options = ["--presence-penalty", "-1", "--frequency-penalty", "-0.5", "--stop", "- ", "--prompt", "- a list"];
    let (code, output, error) = run(&[&["generate", file][..], &options, &cpu].concat());
    assert_eq!(code, Some(0), "{error}");
    assert!(output.starts_with("- a list"), "{output}");
    let arguments = [&["chat", file, "--system", "- short"][..], &cpu].concat();
    assert_eq!(run_with_input(&arguments, b"Hi\n").0, Some(0));
    // The range of the temperature has no negative numbers.
    let (code, _, error) = run(&[&["generate", file, "--prompt", "a", "--temperature", "-1"][..], &cpu].concat());
    assert_eq!(code, Some(2));
    assert!(error.contains("'--temperature <TEMPERATURE>': expected 0 or more, found -1"), "{error}");
}

#[test]
fn images_need_a_vision_tower() {
    let file = small_chat_model("no-tower", 120, true);
    let image = temporary("one-pixel.ppm");
    std::fs::write(&image, b"P6 1 1 255\nabc").unwrap();
    let (file, image) = (file.to_str().unwrap(), image.to_str().unwrap());
    for command in [&["chat", file][..], &["generate", file, "--prompt", "a"]] {
        let (code, output, error) =
            run_with_input(&[command, &["--image", image, "--device", "cpu"]].concat(), b"Hi\n");
        assert_eq!((code, output.as_str()), (Some(1), ""), "{command:?}");
        assert!(error.contains("the model has no vision tower"), "{command:?}: {error}");
    }
}

/// Gives options that are wrong with a file that does not exist: the options are checked first.
#[test]
fn options_are_checked_before_the_model_is_read() {
    let (generate, chat) = (["generate", "absent.gguf", "--prompt", "a"], ["chat", "absent.gguf"]);
    let sampling = [
        "--temperature=nan",
        "--temperature=warm",
        "--top-p=0",
        "--min-p=1.5",
        "--repetition-penalty=0",
        "--frequency-penalty=nan",
        "--presence-penalty=inf",
    ];
    let sampling = sampling.iter().flat_map(|option| [(&generate[..], *option), (&chat, option)]);
    let quantize = ["quantize", "absent.gguf", "absent-Q9.gguf"];
    let formats = ["--format=Q9", "--embedding-format=IQ1_S"].map(|option| (&quantize[..], option));
    for (command, option) in sampling.chain(formats) {
        let (code, output, error) = run(&[command, &[option]].concat());
        assert_eq!((code, output.as_str()), (Some(2), ""), "{option}");
        let (name, value) = option.split_once('=').unwrap();
        assert!(error.starts_with(&format!("error: invalid value '{value}' for '{name} <")), "{option}: {error}");
        assert!(error.contains("': expected ") || error.contains("; supported: F32, F16, "), "{option}: {error}");
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let (code, _, error) = run(&["serve", "absent.gguf", "--host", "localhost", "--port", &port]);
    assert_eq!(code, Some(1));
    assert!(error.starts_with(&format!("error: cannot listen at 127.0.0.1:{port}: ")), "{error}");
}

/// Interrupts an answer, and sends another message.
#[cfg(unix)]
#[test]
fn an_interrupt_of_an_answer_keeps_the_chat() {
    let file = small_chat_model("interrupted-chat", 100_000, false);
    let arguments = ["chat", file.to_str().unwrap(), "--device", "cpu", "--max-tokens", "19000", "--ctx-size", "20000"];
    let mut command = models(&arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut wait_for = |text: &str| {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(errors.read_line(&mut line).unwrap() > 0, "the messages ended before `{text}`");
        }
    };
    let id = child.id().to_string();
    input.write_all(b"Hi\n").unwrap();
    // The first byte of the answer shows that the answer has begun.
    assert!(!output.fill_buf().unwrap().is_empty());
    let reader = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()).unwrap());
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    wait_for("; interrupted");
    // A message that is too long shows that the chat continues.
    input.write_all(format!("{}\n", "x ".repeat(12_000)).as_bytes()).unwrap();
    wait_for("; the message is dropped");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    reader.join().unwrap();
}

/// Reads a model by the folder of its only GGUF file.
#[test]
fn a_folder_with_one_gguf_file_is_a_model() {
    let file = small("in-a-folder", "llama", true);
    let folder = temporary("one-gguf");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(&file, folder.join("a.gguf")).unwrap();
    let path = folder.to_str().unwrap();
    let (code, output, error) = run(&["fit", path, "--json"]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(output, run(&["fit", file.to_str().unwrap(), "--json"]).1);
    let to = temporary("one-gguf-Q4_0.gguf");
    assert_eq!(run(&["quantize", path, to.to_str().unwrap(), "--format", "Q4_0"]).0, Some(0));
    std::fs::copy(&file, folder.join("b.gguf")).unwrap();
    let (code, _, error) = run(&["fit", path]);
    assert_eq!(code, Some(1));
    assert!(error.contains("expected model.safetensors, model.safetensors.index.json or a single GGUF"), "{error}");
}

#[test]
fn the_text_of_a_perplexity_is_utf8() {
    let (file, text) = (small_chat_model("utf8", 120, true), temporary("latin.txt"));
    std::fs::write(&text, b"caf\xe9 and more").unwrap();
    let (code, output, error) = run(&["perplexity", file.to_str().unwrap(), text.to_str().unwrap()]);
    assert_eq!((code, output.as_str()), (Some(1), ""));
    assert!(error.ends_with("latin.txt: byte 3 is not UTF-8\n"), "{error}");
}

/// Runs a model with a larger context size than its own.
#[test]
fn a_context_beyond_the_model_is_reported() {
    let file = small_chat_model("context", 120, true);
    let generate = ["generate", file.to_str().unwrap(), "--prompt", "a", "--max-tokens", "1", "--device", "cpu"];
    let message = "the context size is 120 tokens, the model's, instead of 121\n";
    for (option, is_reported) in [(&["--ctx-size", "121"][..], true), (&["--ctx-size", "120"], false), (&[], false)] {
        let (code, _, error) = run(&[&generate[..], option].concat());
        assert_eq!((code, error.contains(message)), (Some(0), is_reported), "{error}");
    }
}

/// Gives commands the options of images and drafts, which have no effect there.
#[test]
fn options_without_effect_are_refused() {
    let commands = [&["perplexity", "a", "b"][..], &["compare", "a", "b"], &["bench", "a"]];
    for command in commands {
        for option in ["--mmproj", "--image-tokens", "--drafts"] {
            let (code, _, error) = run(&[command, &[option, "1"]].concat());
            let is_known = command[0] == "bench" && option == "--drafts";
            assert_eq!(error.contains("unexpected argument"), !is_known, "{command:?} {option}: {error}");
            assert_eq!(code, Some(if is_known { 1 } else { 2 }));
        }
    }
}

/// Compares the memory for drafts with that for sequences: steps of both have 8 tokens.
#[test]
fn drafts_need_memory() {
    let file = small_chat_model("fit-drafts", 120, true);
    let needs = |options: &[&str]| {
        let (code, output, error) = run(&[&["fit", file.to_str().unwrap(), "--json"], options].concat());
        assert_eq!(code, Some(0), "{error}");
        serde_json::from_str::<serde_json::Value>(&output).unwrap()["needs"].clone()
    };
    assert_eq!(needs(&["--drafts", "7"]), needs(&["--sequences", "8"]));
    assert_eq!(needs(&["--drafts", "3", "--sequences", "8"]), needs(&["--sequences", "8"]));
    assert_ne!(needs(&["--drafts", "7"]), needs(&[]));
    let (_, output, _) = run(&["fit", file.to_str().unwrap(), "--drafts", "7"]);
    assert!(output.contains("prompts in chunks of 512 tokens\ndrafts in a step: 7\n"), "{output}");
}

#[test]
fn a_bench_beyond_every_cache_is_refused() {
    let file = small_chat_model("large-bench", 120, true);
    let most = u64::MAX.to_string();
    for options in [&["--depth", &most][..], &["--prompt", &most], &["--generate", &most], &["--depth", "4294967295"]] {
        let (code, output, error) = run(&[&["bench", file.to_str().unwrap(), "--device", "cpu"], options].concat());
        assert_eq!((code, output.as_str()), (Some(1), ""), "{options:?}: {error}");
        assert!(
            error.starts_with("error: a batch, options: expected fewer than 2³² − 1 tokens"),
            "{options:?}: {error}"
        );
    }
}

/// Measures a model in which a scale of the last token's row is NaN or infinite.
#[test]
fn damaged_weights_have_no_figures() {
    let file = small_chat_model("finite-weights", 120, false);
    let text = temporary("damaged-weights.txt");
    std::fs::write(&text, "a text").unwrap();
    for scale in [f16::NAN, f16::INFINITY] {
        let damaged = with_last_embedding(&file, &scale.to_le_bytes());
        let [file, damaged, text] = [&file, &damaged, &text].map(|path| path.to_str().unwrap());
        for arguments in [&["perplexity", damaged, text][..], &["compare", damaged, file], &["compare", file, damaged]]
        {
            let (code, output, error) = run(&[arguments, &["--device", "cpu"]].concat());
            assert_eq!((code, output.as_str()), (Some(1), ""), "{arguments:?}, {scale}: {error}");
            assert!(
                error.ends_with(&format!("of `{damaged}`: the weights may be damaged\n")),
                "{arguments:?}: {error}"
            );
        }
    }
}

/// Gives `--cache` the names that `fit` prints, and those of the documentation.
#[test]
fn formats_of_the_cache_may_have_capitals() {
    for (format, expected) in [("Q8_0", 1), ("q8_0", 1), ("F16", 1), ("f32", 1), ("Q4_0", 2)] {
        let (code, _, error) = run(&["bench", "absent.gguf", "--cache", format]);
        assert_eq!((code, error.contains("absent.gguf")), (Some(expected), expected == 1), "{format}: {error}");
    }
}
