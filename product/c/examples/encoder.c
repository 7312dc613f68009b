/*
 * A live encoder that follows the network: x264 in FFmpeg's libraries, one section for each picture.
 *
 *     cc encoder.c -o encoder $(pkg-config --cflags --libs comity libavcodec libavutil)
 *     ./encoder 'comity://127.0.0.1:9000?passphrase=@secret&latency=400ms' 500
 */
#include <comity.h>
#include <libavcodec/avcodec.h>
#include <libavutil/opt.h>
#include <libavutil/time.h>

#define FPS 25
#define FIRST_RATE 500000

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, comity_error());
    return 1;
}

/* A moving pattern: the texture makes the encoder need its bits. */
static void draw(AVFrame *picture, int number)
{
    av_frame_make_writable(picture);
    for (int plane = 0; plane < 3; plane++) {
        int height = plane ? picture->height / 2 : picture->height;
        int width = plane ? picture->width / 2 : picture->width;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                picture->data[plane][y * picture->linesize[plane] + x] =
                    (x + number * 3) * (y + number) / (plane + 7) + number;
    }
    picture->pts = number;
}

static int send_picture(int connection, AVPacket *packet)
{
    uint8_t importance = packet->flags & AV_PKT_FLAG_KEY ? 200 : 100;
    union {
        struct cmsghdr first;
        char bytes[CMSG_SPACE(sizeof importance)];
    } control;
    memset(&control, 0, sizeof control);
    control.first.cmsg_level = SOL_COMITY;
    control.first.cmsg_type = TL_IMPORTANCE;
    control.first.cmsg_len = CMSG_LEN(sizeof importance);
    *CMSG_DATA(&control.first) = importance;
    struct iovec section = {packet->data, packet->size};
    struct msghdr message = {0};
    message.msg_iov = &section;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    return comity_sendmsg(connection, &message, MSG_TL) == 1;
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: encoder URI PICTURES\n");
        return 2;
    }
    const char *bounds[] = {"encmin", "200kbps", "encmax", "8Mbps", NULL};
    int connection = comity_connect(arguments[1], bounds, 0);
    if (connection < 0)
        return fail("connect");
    const AVCodec *codec = avcodec_find_encoder_by_name("libx264");
    AVCodecContext *encoder = avcodec_alloc_context3(codec);
    encoder->width = 640;
    encoder->height = 360;
    encoder->pix_fmt = AV_PIX_FMT_YUV420P;
    encoder->time_base = (AVRational){1, FPS};
    encoder->framerate = (AVRational){FPS, 1};
    encoder->gop_size = 2 * FPS;
    encoder->bit_rate = encoder->rc_max_rate = FIRST_RATE;
    encoder->rc_buffer_size = FIRST_RATE / 4; /* a quarter of a second */
    av_opt_set(encoder->priv_data, "preset", "ultrafast", 0);
    av_opt_set(encoder->priv_data, "tune", "zerolatency", 0);
    AVFrame *picture = av_frame_alloc();
    AVPacket *packet = av_packet_alloc();
    picture->format = encoder->pix_fmt;
    picture->width = encoder->width;
    picture->height = encoder->height;
    if (!codec || avcodec_open2(encoder, codec, NULL) < 0 || av_frame_get_buffer(picture, 0) < 0) {
        fprintf(stderr, "libx264: cannot be opened\n");
        return 1;
    }
    int64_t began = av_gettime_relative(), bytes = 0;
    for (int number = 0; number < atoi(arguments[2]); number++) {
        int64_t rate = comity_encoder_bitrate(connection, 0);
        if (rate < 0)
            return fail("bitrate");
        if (rate > 0 && rate != encoder->bit_rate) {
            /* x264 takes a new rate with the next picture. */
            encoder->bit_rate = encoder->rc_max_rate = rate;
            encoder->rc_buffer_size = rate / 4;
        }
        draw(picture, number);
        if (avcodec_send_frame(encoder, picture) < 0)
            return 1;
        while (avcodec_receive_packet(encoder, packet) == 0) {
            if (!send_picture(connection, packet))
                return fail("send");
            bytes += packet->size;
            av_packet_unref(packet);
        }
        if (number % FPS == FPS - 1)
            printf("%d pictures, encoder %.2f Mb/s, target %.2f Mb/s\n", number + 1,
                   encoder->bit_rate / 1e6, comity_target_bitrate(connection) / 1e6);
        int64_t early = (number + 1) * (AV_TIME_BASE / FPS) - (av_gettime_relative() - began);
        if (early > 0)
            av_usleep(early);
    }
    if (comity_shutdown(connection, -1) < 0)
        return fail("shutdown");
    printf("%lld bytes\n", (long long)bytes);
    av_packet_free(&packet);
    av_frame_free(&picture);
    avcodec_free_context(&encoder);
    return comity_close(connection);
}
