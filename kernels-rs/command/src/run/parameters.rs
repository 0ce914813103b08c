//! Values of the entry's parameters: `--arg` and `--buffer`, each one parameter, in command line
//! order.

use super::element::{BufferElement, Content, NAMES};
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// Parameter of the entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum EntryParameter {
    /// Scalar: its type and bits.
    Scalar(BufferElement, u64),
    /// Bytes of a structure.
    Bytes(Vec<u8>),
    /// Address in a buffer of another parameter: the buffer's name, and the offset in bytes.
    Inside(String, u64),
    /// Address of a buffer.
    Buffer(BufferDescription),
}

/// Description of a buffer on the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BufferDescription {
    pub(super) name: String,
    pub(super) element: BufferElement,
    /// Number of elements; `None` if the file determines it.
    pub(super) count: Option<usize>,
    pub(super) content: Content,
}

/// Parameters in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Parameters(pub(super) Vec<EntryParameter>);

const ARGUMENT: &str = "arg";
const BUFFER: &str = "buffer";

impl Args for Parameters {
    fn augment_args(command: Command) -> Command {
        let argument = Arg::new(ARGUMENT)
            .long(ARGUMENT)
            .value_name("TYPE:VALUE")
            .action(ArgAction::Append)
            .value_parser(ValueParser::new(argument))
            .help("The next parameter is a scalar, f32:1.5; bytes of a structure, bytes:00ff; or an address in a buffer, &x+16");
        let buffer = Arg::new(BUFFER)
            .long(BUFFER)
            .value_name("NAME:TYPE[COUNT]=CONTENT")
            .action(ArgAction::Append)
            .value_parser(ValueParser::new(buffer))
            .help("The next parameter is a buffer's address: x:f32[1024]=iota. CONTENT is a number, iota, random(SEED), or @FILE")
            .long_help(format!(
                "The next parameter is the address of a buffer that is called NAME in reports: x:f32[1024]=iota\n\n\
                 CONTENT is a number, the value of all elements; iota, for 0, 1, 2 and so on; random(SEED), for floats of -1 to 1 and \
                 any integers; or @FILE, for the bytes of a file, or the elements of an array that NumPy saved \
                 (.npy). They determine an omitted COUNT, as in x:f32[]=@x.bin. Without CONTENT all elements are 0. TYPE is one of {NAMES}"
            ));
        command.arg(argument).arg(buffer)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Parameters::augment_args(command)
    }
}

impl FromArgMatches for Parameters {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Parameters, clap::Error> {
        let mut all: Vec<(usize, EntryParameter)> = Vec::new();
        for id in [ARGUMENT, BUFFER] {
            let places = matches.indices_of(id).into_iter().flatten();
            let values = matches.get_many::<EntryParameter>(id).into_iter().flatten().cloned();
            all.extend(places.zip(values));
        }
        all.sort_by_key(|(place, _)| *place);
        Ok(Parameters(all.into_iter().map(|(_, parameter)| parameter).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Parameters::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Parses `f32:1.5`, `bytes:00ff`, `&x+16`.
fn argument(text: &str) -> Result<EntryParameter, String> {
    if let Some(place) = text.strip_prefix('&') {
        let (name, offset) = place.split_once('+').unwrap_or((place, "0"));
        let offset = offset.parse().map_err(|_| format!("`{offset}` is not a number of bytes"))?;
        return Ok(EntryParameter::Inside(name.to_string(), offset));
    }
    let (ty, value) = text.split_once(':').ok_or("expected TYPE:VALUE, as in f32:1.5, or &BUFFER")?;
    if ty == "bytes" {
        let digits = value.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        });
        let bytes = digits.collect::<Option<_>>();
        return bytes.map(EntryParameter::Bytes).ok_or_else(|| format!("`{value}` is not pairs of hexadecimal digits"));
    }
    let element = element(ty)?;
    scalar(element, value).map(|bits| EntryParameter::Scalar(element, bits))
}

/// Parses `x:f32[1024]=iota`.
fn buffer(text: &str) -> Result<EntryParameter, String> {
    const FORM: &str = "expected NAME:TYPE[COUNT]=CONTENT, as in x:f32[1024]=iota";
    let (declared, content) = match text.split_once('=') {
        Some((declared, content)) => (declared, content),
        None => (text, ""),
    };
    let (name, ty) = declared.split_once(':').ok_or(FORM)?;
    let (ty, count) = ty.strip_suffix(']').and_then(|ty| ty.split_once('[')).ok_or(FORM)?;
    if name.is_empty() {
        return Err(FORM.to_string());
    }
    let element = element(ty)?;
    let seed = content.strip_prefix("random(").and_then(|seed| seed.strip_suffix(')'));
    let content = match (content, seed) {
        ("iota", _) => Content::Iota,
        ("random", _) => Content::Random(1),
        ("", _) => Content::Each(0),
        (_, Some(seed)) => {
            Content::Random(seed.parse().map_err(|_| format!("`{seed}` is not a seed: expected a whole number"))?)
        }
        (content, None) => match content.strip_prefix('@') {
            Some(file) => Content::File(file.to_string()),
            None => Content::Each(scalar(element, content)?),
        },
    };
    let count = match (count, &content) {
        ("", Content::File(_)) => None,
        ("", _) => return Err("missing number of elements; only a file implies it".to_string()),
        (count, _) => Some(count.parse().map_err(|_| format!("`{count}` is not a number of elements"))?),
    };
    Ok(EntryParameter::Buffer(BufferDescription { name: name.to_string(), element, count, content }))
}

fn element(name: &str) -> Result<BufferElement, String> {
    BufferElement::from_name(name).ok_or_else(|| format!("`{name}` is not a type; the types are {NAMES}"))
}

fn scalar(element: BufferElement, text: &str) -> Result<u64, String> {
    element.parse(text).ok_or_else(|| format!("`{text}` is not a valid {}", element.name()))
}

#[cfg(test)]
mod tests {
    use super::super::element::IntegerWidth;
    use super::*;

    #[test]
    fn parameters_are_parsed() {
        assert_eq!(argument("u32:7"), Ok(EntryParameter::Scalar(BufferElement::Unsigned(IntegerWidth::Four), 7)));
        assert_eq!(argument("bytes:01ff"), Ok(EntryParameter::Bytes(vec![1, 255])));
        assert_eq!(argument("&x+16"), Ok(EntryParameter::Inside("x".to_string(), 16)));
        let read = |text| match buffer(text) {
            Ok(EntryParameter::Buffer(BufferDescription { name, element, count, content })) => {
                (name, element, count, content)
            }
            other => panic!("{text}: {other:?}"),
        };
        let float = |text, content| assert_eq!(read(text), ("x".to_string(), BufferElement::Float, Some(4), content));
        float("x:f32[4]", Content::Each(0));
        float("x:f32[4]=1", Content::Each(1f32.to_bits().into()));
        float("x:f32[4]=random(9)", Content::Random(9));
        let bytes = BufferElement::Unsigned(IntegerWidth::One);
        assert_eq!(read("b:u8[]=@a=b"), ("b".to_string(), bytes, None, Content::File("a=b".to_string())));
    }

    #[test]
    fn invalid_parameters_are_reported() {
        for (text, message) in [
            ("7", "expected TYPE:VALUE, as in f32:1.5, or &BUFFER"),
            ("u8:256", "`256` is not a valid u8"),
            ("bytes:0", "`0` is not pairs of hexadecimal digits"),
            ("bytes:é", "`é` is not pairs of hexadecimal digits"),
            ("&x+y", "`y` is not a number of bytes"),
        ] {
            assert_eq!(argument(text), Err(message.to_string()));
        }
        for (text, message) in [
            ("x", "expected NAME:TYPE[COUNT]=CONTENT, as in x:f32[1024]=iota"),
            (":f32[1]", "expected NAME:TYPE[COUNT]=CONTENT, as in x:f32[1024]=iota"),
            ("x:f32[]=0", "missing number of elements; only a file implies it"),
            ("x:f32[-1]=0", "`-1` is not a number of elements"),
            ("x:u8[1]=x", "`x` is not a valid u8"),
            ("x:u8[1]=random(x)", "`x` is not a seed: expected a whole number"),
        ] {
            assert_eq!(buffer(text), Err(message.to_string()));
        }
        assert!(argument("f8:1").unwrap_err().starts_with("`f8` is not a type; the types are f32, "));
    }
}
