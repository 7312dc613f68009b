#!/bin/sh
# Makes mpeg1_frames.csv: 60 s of MPEG-1, 352x240 at 25 frames a second, groups of 15 with two B frames between
# references, at 1.15 Mb/s on the average through the video buffer of a Video CD. The picture is ffmpeg's zoom
# into the Mandelbrot set, so that the sizes are those of a real encoder and nobody's film is needed. Lines are in the
# order of the stream, which is that of decoding. Needs ffmpeg and ffprobe; sizes depend on the version (5.1 was used).
set -eu
here=$(dirname "$0")
stream=$(mktemp)
trap 'rm -f "$stream"' EXIT
ffmpeg -v error -y -f lavfi -i "mandelbrot=size=352x240:rate=25" -t 60 -c:v mpeg1video -g 15 -bf 2 \
    -b:v 1150k -maxrate 1500k -bufsize 327680 -f mpeg1video "$stream"
{
    echo "# time_s,bytes,type of 60 s of MPEG-1 at 1.15 Mb/s; made by frames.sh"
    ffprobe -v error -select_streams v -show_entries frame=pkt_pos,pkt_size,pict_type -of csv=p=0 "$stream" |
        grep -E '^[0-9]+,[0-9]+,[IPB]' | sort -t , -k 1,1n |
        awk -F , '{ printf "%.2f,%d,%s\n", (NR - 1) / 25, $2, $3 }'
} > "$here/mpeg1_frames.csv"
