//! Derives that stand above `#[device]`.
//!
//! rustc expands the attributes of an item from the top, so the tokens that `#[device]` gets lack a
//! derive above it. The text of the source file still has the derive.

use proc_macro2::Span;
use syn::parse::Parser;
use syn::{Attribute, Item};

/// The largest number of bytes between a derive and `#[device]`.
const MAX_DISTANCE: usize = 1 << 13;

/// Adds the derives above the attribute that is being expanded to a struct or enum.
pub(super) fn add_derives_above(item: &mut Item) {
    let attributes = match item {
        Item::Struct(s) => &mut s.attrs,
        Item::Enum(e) => &mut e.attrs,
        _ => return,
    };
    attributes.extend(text_before(Span::call_site()).iter().flat_map(|text| derives_at_end(text)));
}

/// Returns the text of the file before a place.
fn text_before(place: Span) -> Option<String> {
    let text = std::fs::read_to_string(place.local_file()?).ok()?;
    let start = place.start();
    let line_start = text.split_inclusive('\n').take(start.line.checked_sub(1)?).map(str::len).sum::<usize>();
    let line = &text[line_start..];
    let column = line.char_indices().nth(start.column).map_or(line.len(), |(at, _)| at);
    Some(text[..line_start + column].to_string())
}

/// Returns the derives among the attributes at the end of a text.
fn derives_at_end(text: &str) -> Vec<Attribute> {
    let mut found = Vec::new();
    for (start, _) in text.rmatch_indices("#[").take_while(|(start, _)| text.len() - start < MAX_DISTANCE) {
        let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
        let commented = text[line..start].contains("//");
        if !commented && let Ok(attributes) = Attribute::parse_outer.parse_str(&text[start..]) {
            found = attributes;
        }
    }
    found.retain(|attribute| attribute.path().is_ident("derive"));
    found
}

#[cfg(test)]
mod tests {
    use super::derives_at_end;
    use quote::ToTokens;

    fn derives(text: &str) -> Vec<String> {
        derives_at_end(text).iter().map(|attribute| attribute.to_token_stream().to_string()).collect()
    }

    #[test]
    fn the_attributes_at_the_end_are_read() {
        let text =
            "use a;\n/// Text.\n#[derive(Clone, PartialEq)] // Why.\n/// More #[text].\n#[repr(u8)] #[derive(Copy)]\n";
        assert_eq!(derives(text), ["# [derive (Clone , PartialEq)]", "# [derive (Copy)]"]);
        let nested = "mod inner {\n    #[doc = \"}\"]\n    #[derive(PartialOrd)]\n    ";
        assert_eq!(derives(nested), ["# [derive (PartialOrd)]"]);
    }

    #[test]
    fn other_text_is_no_derive() {
        for text in [
            "",
            "#[derive(PartialEq)] struct Before;\n",
            "// #[derive(PartialEq)]\n",
            "/// #[derive(PartialEq)]\n",
            "/* #[derive(PartialEq)] */\n",
            "/* #[derive(PartialEq)]\n*/ #[repr(u8)]\n",
            "const TEXT: &str = \"#[derive(PartialEq)]\";\n",
            "$(#[$meta])*\n",
            "#[cfg_attr(test, derive(PartialEq))]\n",
        ] {
            assert!(derives(text).is_empty(), "{text}");
        }
    }
}
