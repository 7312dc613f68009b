//! Detects faults at the beginning of an output.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use comity_media::{Entry, Header, is_packets};
use comity_stream::{MediaUnit, Missing};

/// Checks the first picture of each stream, and the first bytes of a file.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    /// The streams that have had a picture, and the streams whose first pictures did not arrive.
    begun: BTreeSet<u16>,
    cut: BTreeSet<u16>,
    /// The file, if its name suggests another container.
    promise: Option<PathBuf>,
}

impl Beginning {
    /// A checker for this file.
    pub(super) fn of_file(path: &Path) -> Self {
        const OTHERS: [&str; 10] = [
            "mp4", "m4v", "mov", "mkv", "webm", "avi", "flv", "m3u8", "mpd", "mxf",
        ];
        let extension = path.extension().unwrap_or_default();
        let is_other = OTHERS
            .iter()
            .any(|other| extension.eq_ignore_ascii_case(other));
        Self {
            promise: is_other.then(|| path.to_owned()),
            ..Self::default()
        }
    }

    /// Records a missing section.
    pub(super) fn miss(&mut self, missing: &Missing) {
        if !self.begun.contains(&missing.stream.0) {
            self.cut.insert(missing.stream.0);
        }
    }

    /// A warning if a stream begins with this picture and it cannot be decoded.
    pub(super) fn picture(&mut self, unit: &MediaUnit) -> Option<String> {
        let stream = unit.stream.0;
        if self.begun.contains(&stream) {
            return None;
        }
        let entry = Entry::of(&unit.payload)?;
        self.begun.insert(stream);
        let name = match pid_of(&unit.payload) {
            Some(pid) => format!("PID {pid}"),
            None => "the video".into(),
        };
        let is_cut = self.cut.remove(&stream);
        match entry {
            Entry::Yes => None,
            Entry::No if is_cut => Some(format!(
                "{name} begins between two key pictures, since those before it did not arrive (--gaps lists them); a \
                 decoder shows nothing, or damaged pictures, until the next one"
            )),
            Entry::No => Some(format!(
                "{name} begins between two key pictures, as its source or its first connection does; a decoder shows \
                 nothing, or damaged pictures, until the next one"
            )),
            Entry::WithoutParameters => Some(format!(
                "{name} begins with a key picture that comes without its parameter sets; a decoder can only begin where \
                 the source repeats them: set the encoder to do so with each key picture"
            )),
        }
    }

    /// A warning if the first bytes of a file do not match its name. A sender that does not
    /// recognise a container sends its bytes unchanged, and then they match.
    pub(super) fn bytes(&mut self, first: &[u8]) -> Option<String> {
        if first.is_empty() {
            return None;
        }
        let path = self.promise.take().filter(|_| is_packets(first))?;
        let path = path.display();
        Some(format!(
            "{path}: gets an MPEG transport stream, whatever its name. For another container: \
             comity recv URI - | ffmpeg -i - -c copy {path}"
        ))
    }
}

/// The PID of a unit's stream.
pub(super) fn pid_of(payload: &[u8]) -> Option<u16> {
    match Header::decode(payload) {
        Ok((Header::Unit(unit), _)) => Some(unit.pid),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use comity::{Importance, SectionId, StreamId};
    use comity_media::{FrameType, Times, Unit};
    use comity_stream::{Due, MissingReason};

    use super::*;
    use crate::clock::now;

    /// A slice of H.264 in this stream, with or without its parameter sets; a random access point
    /// if `random_access`.
    fn picture(stream: u16, random_access: bool, parameters: &[u8]) -> MediaUnit {
        let header = Header::Unit(Unit {
            pid: 255 + stream,
            stream_type: 0x1b,
            stream_id: 0xe0,
            frame: match random_access {
                true => FrameType::Key,
                false => FrameType::Predicted { referenced: true },
            },
            times: Times::None,
            random_access,
            discontinuity: false,
            aligned: false,
        });
        let mut payload = Vec::new();
        header.encode(&mut payload);
        payload.extend(parameters);
        payload.extend([0, 0, 1, 0x65, 1]);
        MediaUnit {
            stream: StreamId(stream),
            id: SectionId(0),
            importance: Importance(0),
            source_time: now(),
            due: Due::Never,
            needs: None,
            payload: Bytes::from(payload),
            frame: None,
            is_damaged: false,
        }
    }

    const PARAMETERS: [u8; 10] = [0, 0, 1, 0x67, 1, 0, 0, 1, 0x68, 1];

    #[test]
    fn a_first_picture_that_depends_on_others_is_reported_with_the_reason() {
        let mut beginning = Beginning::default();
        let text = beginning.picture(&picture(1, false, &[])).unwrap();
        assert!(
            text.starts_with("PID 256 begins between two key pictures, as its source"),
            "{text}"
        );
        assert_eq!(beginning.picture(&picture(1, false, &[])), None, "once");
        let text = beginning.picture(&picture(2, true, &[])).unwrap();
        assert!(
            text.contains("PID 257 begins with a key picture that comes without"),
            "{text}"
        );
        // The key picture was lost on the path.
        let lost = picture(3, true, &PARAMETERS).missing(MissingReason::Lost);
        beginning.miss(&lost);
        let text = beginning.picture(&picture(3, false, &[])).unwrap();
        assert!(
            text.contains(
                "PID 258 begins between two key pictures, since those before it did not arrive"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_first_picture_with_random_access_is_not_reported() {
        let mut beginning = Beginning::default();
        beginning.miss(&picture(1, true, &PARAMETERS).missing(MissingReason::Lost));
        assert_eq!(beginning.picture(&picture(1, true, &PARAMETERS)), None);
        beginning.miss(&picture(1, true, &PARAMETERS).missing(MissingReason::Lost));
        assert_eq!(beginning.picture(&picture(1, false, &[])), None);
        // Losses in one stream do not affect another.
        let text = beginning.picture(&picture(2, false, &[])).unwrap();
        assert!(text.contains("as its source"), "{text}");
        let mut data = picture(3, false, &[]);
        data.payload = Bytes::from_static(b"no picture");
        assert_eq!(beginning.picture(&data), None);
    }

    #[test]
    fn a_file_name_with_another_container_is_reported_for_a_transport_stream() {
        let packets = [&[0x47; 188][..], &[0x47; 188]].concat();
        let warning = |name: &str, first: &[u8]| {
            let mut beginning = Beginning::of_file(Path::new(name));
            assert_eq!(beginning.bytes(&[]), None);
            let warning = beginning.bytes(first);
            assert_eq!(beginning.bytes(&packets), None, "once, at the beginning");
            warning
        };
        let text = warning("/tmp/film.MP4", &packets).unwrap();
        assert!(
            text.starts_with("/tmp/film.MP4: gets an MPEG transport stream"),
            "{text}"
        );
        // A film in MP4, which the sender did not recognise.
        assert_eq!(warning("film.mp4", b"\0\0\0\x20ftypisom"), None);
        for name in ["film.ts", "film.mp4.ts", "mp4", "/dev/null", "film.m2ts"] {
            assert_eq!(warning(name, &packets), None, "{name}");
        }
    }
}
