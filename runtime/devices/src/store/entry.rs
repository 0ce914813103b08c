//! Cache entries: their keys and their file format.

/// The first bytes of every file.
const MAGIC: &[u8] = b"kernel-dsl cache, format 1\n";
const HASH_BYTES: usize = 16;

/// The key of an entry: everything that its payload depends on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EntryKey {
    /// The parts, each after its length.
    bytes: Vec<u8>,
}

impl EntryKey {
    /// Makes a key of these parts, in order.
    pub fn new(parts: &[&[u8]]) -> EntryKey {
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(*part);
        }
        EntryKey { bytes }
    }

    /// Returns the name of the entry's file, without the extension.
    pub fn name(&self) -> String {
        format!("{:032x}", fnv(&self.bytes))
    }

    /// Returns the file's content: the key and the payload, each after its length, and a checksum.
    pub fn entry(&self, payload: &[u8]) -> Vec<u8> {
        let mut entry = MAGIC.to_vec();
        for part in [&self.bytes[..], payload] {
            entry.extend((part.len() as u64).to_le_bytes());
            entry.extend(part);
        }
        entry.extend(fnv(&entry).to_le_bytes());
        entry
    }

    /// Returns the payload of a file, if the file is whole and has this key.
    pub fn payload<'e>(&self, entry: &'e [u8]) -> Option<&'e [u8]> {
        let (content, checksum) = entry.split_at_checked(entry.len().checked_sub(HASH_BYTES)?)?;
        if fnv(content).to_le_bytes() != checksum {
            return None;
        }
        let (key, rest) = part(content.strip_prefix(MAGIC)?)?;
        let (payload, rest) = part(rest)?;
        (key == self.bytes && rest.is_empty()).then_some(payload)
    }
}

/// Splits off a part stored after its length.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// Returns the 128-bit FNV-1a hash (draft-eastlake-fnv). The hash detects damage; the folder's
/// permissions protect against malice.
fn fnv(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62272e07bb014262b821756295c58d;
    const PRIME: u128 = 0x0000000001000000000000000000013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_matches_published_vectors() {
        // From the test vectors of the draft: the empty string and "a".
        assert_eq!(fnv(b""), 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(fnv(b"a"), 0xd228cb696f1a8caf78912b704e4a8964);
    }

    #[test]
    fn a_damaged_entry_has_no_payload() {
        let key = EntryKey::new(&[b"one", b"two"]);
        let entry = key.entry(b"payload");
        assert_eq!(key.payload(&entry), Some(&b"payload"[..]));
        for at in 0..entry.len() {
            for bit in 0..8 {
                let mut damaged = entry.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(key.payload(&damaged), None, "byte {at}, bit {bit}");
            }
            assert_eq!(key.payload(&entry[..at]), None, "cut at {at}");
        }
        assert_eq!(key.payload(&[&entry[..], b"x"].concat()), None);
        // An equal sequence of bytes, divided differently: another key, even if the hash were
        // equal.
        assert_eq!(EntryKey::new(&[b"onet", b"wo"]).payload(&entry), None);
    }
}
