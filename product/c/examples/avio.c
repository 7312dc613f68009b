/*
 * FFmpeg's libraries over Comity: sends a file in real time, or receives and counts packets.
 *
 *     cc avio.c -o avio $(pkg-config --cflags --libs comity libavformat libavcodec libavutil)
 *     ./avio receive 'comity://:9000?passphrase=@secret'
 *     ./avio send 'comity://127.0.0.1:9000?passphrase=@secret' film.mp4
 */
#include <comity.h>
#include <libavformat/avformat.h>
#include <libavutil/time.h>

#define BUFFER 32768
#if LIBAVFORMAT_VERSION_MAJOR >= 61
typedef const uint8_t *written;
#else
typedef uint8_t *written;
#endif

static int write_bytes(void *connection, written bytes, int length)
{
    ssize_t count = comity_write(*(int *)connection, bytes, length);
    return count < 0 ? AVERROR(errno) : (int)count;
}

static int read_bytes(void *connection, uint8_t *bytes, int length)
{
    ssize_t count = comity_read(*(int *)connection, bytes, length);
    return count < 0 ? AVERROR(errno) : count == 0 ? AVERROR_EOF : (int)count;
}

static int fail(const char *what, int error)
{
    const char *why = error == -1 || error == 0 ? comity_error() : av_err2str(error);
    fprintf(stderr, "%s: %s\n", what, why);
    return 1;
}

static int send_file(int connection, const char *file)
{
    AVFormatContext *from = NULL, *to = NULL;
    int error = avformat_open_input(&from, file, NULL, NULL);
    if (error < 0 || (error = avformat_find_stream_info(from, NULL)) < 0)
        return fail(file, error);
    avformat_alloc_output_context2(&to, NULL, "mpegts", NULL);
    to->pb = avio_alloc_context(av_malloc(BUFFER), BUFFER, 1, &connection, NULL, write_bytes, NULL);
    to->flags |= AVFMT_FLAG_FLUSH_PACKETS;
    for (unsigned i = 0; i < from->nb_streams; i++) {
        AVStream *stream = avformat_new_stream(to, NULL);
        avcodec_parameters_copy(stream->codecpar, from->streams[i]->codecpar);
        stream->codecpar->codec_tag = 0;
    }
    if ((error = avformat_write_header(to, NULL)) < 0)
        return fail("header", error);
    int64_t began = av_gettime_relative(), first = AV_NOPTS_VALUE;
    AVPacket *packet = av_packet_alloc();
    while (error >= 0 && av_read_frame(from, packet) >= 0) {
        int index = packet->stream_index;
        AVRational base = from->streams[index]->time_base;
        if (packet->dts != AV_NOPTS_VALUE) {
            int64_t due = av_rescale_q(packet->dts, base, AV_TIME_BASE_Q);
            first = first == AV_NOPTS_VALUE ? due : first;
            int64_t early = due - first - (av_gettime_relative() - began);
            if (early > 0)
                av_usleep(early);
        }
        av_packet_rescale_ts(packet, base, to->streams[index]->time_base);
        error = av_interleaved_write_frame(to, packet);
    }
    if (error < 0 || (error = av_write_trailer(to)) < 0)
        return fail("write", error);
    av_packet_free(&packet);
    av_freep(&to->pb->buffer);
    avio_context_free(&to->pb);
    avformat_free_context(to);
    avformat_close_input(&from);
    return comity_shutdown(connection, -1) < 0 ? fail("shutdown", 0) : comity_close(connection);
}

static int receive(int connection)
{
    AVFormatContext *from = avformat_alloc_context();
    AVIOContext *bytes =
        avio_alloc_context(av_malloc(BUFFER), BUFFER, 0, &connection, read_bytes, NULL, NULL);
    from->pb = bytes;
    int error = avformat_open_input(&from, NULL, av_find_input_format("mpegts"), NULL);
    if (error < 0 || (error = avformat_find_stream_info(from, NULL)) < 0)
        return fail("open", error);
    unsigned long packets = 0;
    AVPacket *packet = av_packet_alloc();
    while ((error = av_read_frame(from, packet)) >= 0) {
        packets++;
        av_packet_unref(packet);
    }
    if (error != AVERROR_EOF)
        return fail("read", error);
    printf("%u streams, %lu packets\n", from->nb_streams, packets);
    av_packet_free(&packet);
    avformat_close_input(&from);
    av_freep(&bytes->buffer);
    avio_context_free(&bytes);
    return comity_close(connection);
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "send") == 0) {
        int connection = comity_connect(arguments[2], NULL, 0);
        return connection < 0 ? fail("connect", 0) : send_file(connection, arguments[3]);
    }
    if (count == 3 && strcmp(arguments[1], "receive") == 0) {
        int listener = comity_listen(arguments[2], NULL, 0);
        if (listener < 0)
            return fail("listen", 0);
        char address[64];
        comity_local_address(listener, address, sizeof address);
        printf("listening at %s\n", address);
        fflush(stdout);
        int connection = comity_accept(listener, 0);
        return connection < 0 ? fail("accept", 0) : receive(connection);
    }
    fprintf(stderr, "usage: avio send URI FILE | avio receive URI\n");
    return 2;
}
