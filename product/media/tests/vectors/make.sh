#!/usr/bin/env bash
# Makes the test vectors beside it from synthetic pictures and tones, and the list of frames that ffprobe
# sees in each. Needs Debian's ffmpeg (with x264 and x265). The vectors are committed: other versions of
# the encoders give other bytes.
set -euo pipefail
cd "$(dirname "$0")"
ff() { ffmpeg -hide_banner -loglevel error -y -fflags +bitexact "$@"; }
picture="testsrc2=size=320x180:rate=25:duration=2"
small="testsrc2=size=192x112:rate=25:duration=2"
tone="sine=frequency=440:sample_rate=48000:duration=2"
exact=(-flags:v +bitexact -flags:a +bitexact -map_metadata -1)

# H.264: a pyramid of B pictures, closed groups of half a second, with AAC.
ff -f lavfi -i "$picture" -f lavfi -i "$tone" -c:v libx264 -preset veryfast -b:v 250k -pix_fmt yuv420p \
    -x264-params "bframes=3:b-adapt=0:b-pyramid=normal:keyint=13:min-keyint=13:scenecut=0:threads=1" \
    -c:a aac -b:a 48k "${exact[@]}" -f mpegts h264.ts
# H.265: open groups, so that leading pictures (RASL) follow a clean random access picture.
ff -f lavfi -i "$picture" -c:v libx265 -preset fast -b:v 250k -pix_fmt yuv420p \
    -x265-params "bframes=3:b-adapt=0:keyint=20:min-keyint=20:scenecut=0:open-gop=1:pools=1:frame-threads=1:log-level=error" \
    "${exact[@]}" -f mpegts h265.ts
# MPEG-2 with MPEG-1 layer II audio, and an MPEG-1 elementary stream.
ff -f lavfi -i "$small" -f lavfi -i "$tone" -c:v mpeg2video -b:v 250k -g 12 -bf 2 -sc_threshold 1000000000 \
    -c:a mp2 -b:a 64k "${exact[@]}" -f mpegts mpeg2.ts
ff -f lavfi -i "$small" -c:v mpeg1video -b:v 250k -g 12 -bf 2 -sc_threshold 1000000000 \
    "${exact[@]}" -f mpeg1video mpeg1.m1v

# One line a frame, in the order of presentation: pict_type, pts (none in an elementary stream), number in
# coded order.
for name in h264.ts h265.ts mpeg2.ts mpeg1.m1v; do
    {
        echo "pict_type,pts,coded_picture_number"
        ffprobe -loglevel error -select_streams v:0 -show_frames \
            -show_entries frame=pts,pict_type,coded_picture_number -of compact=p=0 "$name" |
            python3 -c '
import sys
for line in sys.stdin:
    entry = dict(pair.split("=", 1) for pair in line.strip().split("|") if "=" in pair)
    if "pict_type" in entry:
        print(entry["pict_type"], entry["pts"], entry["coded_picture_number"], sep=",")'
    } >"${name%.*}.csv"
    # One line a packet, in the order of the file: stream, pts, dts, bytes, whether it is a key picture.
    {
        echo "stream,pts,dts,size,key"
        ffprobe -loglevel error -show_packets -show_entries packet=stream_index,pts,dts,size,flags \
            -of csv=p=0 "$name" | sed -e 's/,K.*$/,1/' -e 's/,_.*$/,0/'
    } >"${name%.*}.packets.csv"
done
