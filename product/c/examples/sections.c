/*
 * Sends sections with deadlines, or receives them.
 *
 *     cc sections.c -o sections $(pkg-config --cflags --libs comity)
 *     ./sections receive 'comity://:9000?passphrase=@secret'
 *     ./sections send 'comity://127.0.0.1:9000?passphrase=@secret' 250
 */
#define _POSIX_C_SOURCE 200809L
#include <comity.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRAME_NS 20000000LL     /* a frame every 20 ms, a key frame every 12 */
#define DEADLINE_NS 400000000LL /* and 400 ms for each to arrive */
#define ITEMS 8

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, comity_error());
    return 1;
}

static struct cmsghdr *put(struct cmsghdr *at, int type, const void *data, size_t size)
{
    at->cmsg_level = SOL_COMITY;
    at->cmsg_type = type;
    at->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(at), data, size);
    return (struct cmsghdr *)((char *)at + CMSG_SPACE(size));
}

static int send_frames(const char *uri, uint64_t frames)
{
    int connection = comity_connect(uri, NULL, 0);
    if (connection < 0)
        return fail("connect");
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    static char picture[40000];
    for (uint64_t frame = 0; frame < frames; frame++) {
        int is_key = frame % 12 == 0;
        int64_t now = due.tv_sec * 1000000000LL + due.tv_nsec, deadline = now + DEADLINE_NS;
        uint8_t importance = is_key ? 200 : 100;
        uint64_t needs = is_key ? TL_NOTHING : frame - 1;
        union {
            struct cmsghdr first;
            char bytes[2 * CMSG_SPACE(8) + CMSG_SPACE(1)];
        } control;
        memset(&control, 0, sizeof control);
        struct cmsghdr *next = put(&control.first, TL_DEADLINE, &deadline, sizeof deadline);
        next = put(next, TL_NEEDS, &needs, sizeof needs);
        put(next, TL_IMPORTANCE, &importance, sizeof importance);
        struct iovec section = {picture, is_key ? 40000 : 13000};
        struct msghdr message = {0};
        message.msg_iov = &section;
        message.msg_iovlen = 1;
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        if (comity_sendmsg(connection, &message, MSG_TL) != 1)
            return fail("send");
        now += FRAME_NS;
        due.tv_sec = now / 1000000000;
        due.tv_nsec = now % 1000000000;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0)
            ;
    }
    struct comity_statistics counted;
    if (comity_shutdown(connection, -1) < 0)
        return fail("shutdown");
    comity_stats(connection, &counted, sizeof counted);
    printf("%llu of %llu arrived, target %.1f Mb/s\n", (unsigned long long)counted.arrived_sections,
           (unsigned long long)counted.submitted_sections, counted.target_mbps);
    return comity_close(connection);
}

static int receive(const char *uri)
{
    int listener = comity_listen(uri, NULL, 0);
    if (listener < 0)
        return fail("listen");
    char address[64];
    comity_local_address(listener, address, sizeof address);
    printf("listening at %s\n", address);
    fflush(stdout);
    int connection = comity_accept(listener, 0);
    if (connection < 0)
        return fail("accept");
    unsigned long long whole = 0, bytes = 0, missing = 0;
    for (;;) {
        union {
            struct cmsghdr first;
            char bytes[ITEMS * CMSG_SPACE(sizeof(struct comity_item))];
        } control;
        struct iovec sections[ITEMS] = {{NULL, 0}}; /* null: the library lends its bytes */
        struct msghdr message = {0};
        message.msg_iov = sections;
        message.msg_iovlen = ITEMS;
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        ssize_t count = comity_recvmsg(connection, &message, MSG_TL);
        if (count < 0)
            return fail("receive");
        if (count == 0)
            break;
        struct cmsghdr *about = CMSG_FIRSTHDR(&message);
        for (ssize_t i = 0; i < count; i++, about = CMSG_NXTHDR(&message, about)) {
            struct comity_item item;
            memcpy(&item, CMSG_DATA(about), sizeof item);
            if (about->cmsg_type == TL_DATA) {
                whole++; /* the bytes are sections[i].iov_base */
                bytes += sections[i].iov_len;
            } else { /* TL_GAP */
                printf("gap: %llu from number %llu of stream %u, reason %u\n",
                       (unsigned long long)item.count, (unsigned long long)item.number, item.stream,
                       item.reason);
                missing += item.count;
            }
        }
    }
    printf("%llu sections of %llu bytes, %llu missing\n", whole, bytes, missing);
    comity_close(connection);
    return comity_close(listener);
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "send") == 0)
        return send_frames(arguments[2], strtoull(arguments[3], NULL, 10));
    if (count == 3 && strcmp(arguments[1], "receive") == 0)
        return receive(arguments[2]);
    fprintf(stderr, "usage: sections send URI FRAMES | sections receive URI\n");
    return 2;
}
