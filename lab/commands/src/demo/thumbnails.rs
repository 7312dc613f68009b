//! Small pictures of the clip inside the program, for the page.

use base64ct::{Base64, Encoding};

/// The pictures of the clip in display order, each a WebP file (`experiments/demo/clip/make.sh`).
const PICTURES: &[u8] = include_bytes!("../../../../experiments/demo/clip/thumbnails.webp");
/// "RIFF" and the length of the rest, RFC 9649, section 2.4.
const HEADER: usize = 8;

/// Their size.
pub(crate) const SIZE: (u32, u32) = (128, 72);

/// The picture with this number as a data URL.
pub(crate) fn address(number: usize) -> Option<String> {
    let picture = pictures().nth(number)?;
    let text = Base64::encode_string(picture);
    Some(format!("data:image/webp;base64,{text}"))
}

fn pictures() -> impl Iterator<Item = &'static [u8]> {
    let mut rest = PICTURES;
    std::iter::from_fn(move || {
        let length: [u8; 4] = rest.get(4..HEADER)?.try_into().ok()?;
        let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
        let (picture, after) = rest.split_at_checked(HEADER + length)?;
        rest = after;
        Some(picture)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_picture_of_the_clip_has_one() {
        assert_eq!(pictures().count(), 250);
        assert_eq!(pictures().map(<[u8]>::len).sum::<usize>(), PICTURES.len());
        assert!(pictures().all(|picture| picture.get(8..12) == Some(b"WEBP")));
        let first = address(0).unwrap();
        // "RIFF" in Base64.
        assert!(first.starts_with("data:image/webp;base64,UklGR"), "{first}");
        assert_eq!(address(250), None);
    }
}
