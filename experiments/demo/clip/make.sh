#!/usr/bin/env bash
# Makes the clip that `comity demo` sends: ten seconds of a synthetic picture and a tone, so that nobody else
# has a right in it. Needs Debian's ffmpeg (with x264). The clip is committed: other versions of the encoder
# give other bytes.
set -euo pipefail
cd "$(dirname "$0")"
ffmpeg -hide_banner -loglevel error -y -fflags +bitexact \
    -f lavfi -i "testsrc2=size=640x360:rate=25:duration=10" \
    -f lavfi -i "sine=frequency=440:beep_factor=4:sample_rate=48000:duration=10" \
    -c:v libx264 -preset slow -b:v 400k -maxrate 600k -bufsize 600k -pix_fmt yuv420p \
    -x264-params "bframes=2:b-adapt=0:b-pyramid=none:keyint=25:min-keyint=25:scenecut=0:threads=1" \
    -c:a aac -b:a 64k -flags:v +bitexact -flags:a +bitexact -map_metadata -1 \
    -metadata service_name="Comity demo clip" -metadata service_provider="Comity" -f mpegts clip.ts

# The pictures that the page shows: each as WebP with 128x72 pixels, one file after the other in the order of
# their times.
ffmpeg -hide_banner -loglevel error -y -i clip.ts -an -vf scale=128:72:flags=area \
    -c:v libwebp -quality 30 -compression_level 6 -f image2pipe thumbnails.webp
