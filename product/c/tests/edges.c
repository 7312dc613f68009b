/* Calls every function wrongly: each is an error with a number and a text, and never a crash. */
#define _POSIX_C_SOURCE 200809L
#include <comity.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETTINGS "?insecure&latency=20s&linger=1min&peeridletimeo=1min&deliver=early"
#define SPACE CMSG_SPACE(sizeof(struct comity_item))

static void check(int holds, const char *what, int line)
{
    if (holds)
        return;
    fprintf(stderr, "line %d: %s; errno %s: %s\n", line, what, strerror(errno), comity_error());
    exit(1);
}

#define HOLDS(condition) check((condition) != 0, #condition, __LINE__)
/* The call fails with this number and a text. */
#define FAILS(number, call) \
    (errno = 0, check((call) == -1 && errno == (number) && *comity_error(), #call, __LINE__))

static int listener, caller, accepted;

/* A message of one section with one piece of ancillary data of its own. */
struct one {
    struct msghdr message;
    struct iovec section;
    union {
        struct cmsghdr first;
        char bytes[2 * SPACE];
    } control;
};

static struct msghdr *one(struct one *one, void *bytes, size_t length)
{
    memset(one, 0, sizeof *one);
    one->section.iov_base = bytes;
    one->section.iov_len = length;
    one->message.msg_iov = &one->section;
    one->message.msg_iovlen = 1;
    return &one->message;
}

static struct msghdr *about(struct one *one, int level, int type, const void *data, size_t size)
{
    one->message.msg_control = one->control.bytes;
    one->message.msg_controllen = CMSG_SPACE(size);
    one->control.first.cmsg_level = level;
    one->control.first.cmsg_type = type;
    one->control.first.cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(&one->control.first), data, size);
    return &one->message;
}

static struct msghdr *room(struct one *into, void *bytes, size_t length)
{
    one(into, bytes, length);
    into->message.msg_control = into->control.bytes;
    into->message.msg_controllen = SPACE;
    return &into->message;
}

static void called(void)
{
    char address[64], uri[256];
    listener = comity_listen("comity://127.0.0.1:0" SETTINGS, NULL, 0);
    HOLDS(listener >= 0);
    HOLDS(comity_local_address(listener, address, sizeof address) > 0);
    snprintf(uri, sizeof uri, "comity://%s" SETTINGS, address);
    caller = comity_connect(uri, NULL, 0);
    HOLDS(caller >= 0);
}

static void connected(void)
{
    called();
    accepted = comity_accept(listener, 0);
    HOLDS(accepted >= 0);
}

static void opening(void)
{
    const char *odd[] = {"latency", NULL}, *unknown[] = {"latensy", "1s", NULL};
    const char *bad[] = {"latency", "soon", NULL}, *twice[] = {"latency", "2s", NULL};
    const char *empty[] = {"", "", NULL}, *fine[] = {"max_waiting", "4", "insecure", "yes", NULL};
    HOLDS(*comity_version());
    HOLDS(*comity_error() == 0);
    FAILS(EFAULT, comity_connect(NULL, NULL, 0));
    FAILS(EFAULT, comity_listen(NULL, NULL, 0));
    FAILS(EINVAL, comity_connect("", NULL, 0));
    FAILS(EINVAL, comity_connect("\xff\xfe", NULL, 0));
    FAILS(EINVAL, comity_connect("comity://host:1?insecure", NULL, 1));
    FAILS(EINVAL, comity_listen("comity://:0?insecure", NULL, 1));
    FAILS(EINVAL, comity_listen("comity://:0", NULL, 0)); /* without credentials */
    FAILS(EINVAL, comity_connect("comity://:9000?insecure", NULL, 0));
    FAILS(EINVAL, comity_listen("comity://host:9000?insecure&mode=caller", NULL, 0));
    FAILS(EINVAL, comity_listen("comity://:0?insecure", odd, 0));
    FAILS(EINVAL, comity_listen("comity://:0?insecure", unknown, 0));
    HOLDS(strstr(comity_error(), "did you mean \"latency\"?") != NULL);
    FAILS(EINVAL, comity_listen("comity://:0?insecure", bad, 0));
    FAILS(EINVAL, comity_listen("comity://:0?insecure&latency=1s", twice, 0));
    FAILS(EINVAL, comity_listen("comity://:0?insecure", empty, 0));
    FAILS(ENOENT, comity_listen("comity://:0?passphrase=@/no/such/file", NULL, 0));
    FAILS(EADDRNOTAVAIL, comity_listen("comity://192.0.2.1:0?insecure&mode=listener", NULL, 0));
    int open = comity_listen("comity://127.0.0.1:0?mode=listener", fine, SOCK_NONBLOCK);
    HOLDS(open >= 0);
    FAILS(EAGAIN, comity_accept(open, 0));
    FAILS(EINVAL, comity_accept(open, 7));
    HOLDS(comity_close(open) == 0);
    FAILS(EBADF, comity_close(open));
    FAILS(EBADF, comity_close(-1));
    FAILS(EBADF, comity_close(STDERR_FILENO));
}

/* Nobody listens at the port of a socket that was closed. */
static void refused(void)
{
    char address[64], uri[256];
    struct one into;
    int open = comity_listen("comity://127.0.0.1:0" SETTINGS, NULL, 0);
    HOLDS(comity_local_address(open, address, sizeof address) > 0);
    HOLDS(comity_close(open) == 0);
    snprintf(uri, sizeof uri, "comity://%s?insecure&conntimeo=10ms", address);
    errno = 0;
    HOLDS(comity_connect(uri, NULL, 0) == -1 && (errno == ECONNREFUSED || errno == ETIMEDOUT));
    int calling = comity_connect(uri, NULL, SOCK_NONBLOCK);
    HOLDS(calling >= 0);
    struct pollfd polled = {calling, POLLOUT, 0};
    HOLDS(poll(&polled, 1, -1) == 1);
    errno = 0;
    HOLDS(comity_sendmsg(calling, one(&into, "x", 1), MSG_TL) == -1);
    HOLDS(errno == ECONNREFUSED || errno == ETIMEDOUT);
    HOLDS(comity_target_bitrate(calling) == -1 && errno != ENOTCONN);
    HOLDS(comity_close(calling) == 0);
    /* A call that nobody will answer: nothing works yet, and it can be closed. */
    calling = comity_connect("comity://127.0.0.1:9?insecure&conntimeo=1min", NULL, SOCK_NONBLOCK);
    HOLDS(calling >= 0);
    FAILS(ENOTCONN, comity_target_bitrate(calling));
    FAILS(ENOTCONN, comity_encoder_bitrate(calling, 0));
    FAILS(ENOTCONN, comity_shutdown(calling, 0));
    FAILS(EAGAIN, comity_sendmsg(calling, one(&into, "x", 1), MSG_TL));
    FAILS(EAGAIN, comity_write(calling, "x", 1));
    FAILS(EAGAIN, comity_recvmsg(calling, room(&into, NULL, 0), MSG_TL));
    HOLDS(comity_close(calling) == 0);
}

static void sending(void)
{
    struct one it;
    int64_t never = TL_NEVER;
    uint64_t later = 7;
    size_t long_one = (size_t)1 << 26;
    char *bytes = calloc(1, long_one);
    HOLDS(bytes != NULL);
    FAILS(EFAULT, comity_sendmsg(caller, NULL, MSG_TL));
    FAILS(EINVAL, comity_sendmsg(caller, one(&it, "x", 1), 0));
    FAILS(EINVAL, comity_sendmsg(caller, one(&it, "x", 1), MSG_TL | MSG_PEEK));
    FAILS(EFAULT, comity_sendmsg(caller, one(&it, NULL, 1), MSG_TL));
    FAILS(EINVAL, comity_sendmsg(caller, one(&it, NULL, 0), MSG_TL));
    FAILS(EINVAL, comity_sendmsg(caller, one(&it, "x", SIZE_MAX), MSG_TL));
    FAILS(EMSGSIZE, comity_sendmsg(caller, one(&it, bytes, long_one), MSG_TL));
    free(bytes);
    one(&it, "x", 1)->msg_iov = NULL;
    FAILS(EFAULT, comity_sendmsg(caller, &it.message, MSG_TL));
    it.message.msg_iovlen = SIZE_MAX;
    it.message.msg_iov = &it.section;
    FAILS(EINVAL, comity_sendmsg(caller, &it.message, MSG_TL));
    it.message.msg_iovlen = 0;
    HOLDS(comity_sendmsg(caller, &it.message, MSG_TL) == 0);
    one(&it, "x", 1)->msg_controllen = 8;
    FAILS(EFAULT, comity_sendmsg(caller, &it.message, MSG_TL));
    one(&it, "x", 1);
    FAILS(EINVAL, comity_sendmsg(caller, about(&it, SOL_SOCKET, TL_DEADLINE, &never, 8), MSG_TL));
    FAILS(EINVAL, comity_sendmsg(caller, about(&it, SOL_COMITY, TL_GAP, &never, 8), MSG_TL));
    FAILS(EINVAL, comity_sendmsg(caller, about(&it, SOL_COMITY, TL_DEADLINE, &never, 4), MSG_TL));
    FAILS(EINVAL, comity_sendmsg(caller, about(&it, SOL_COMITY, TL_NEEDS, &later, 8), MSG_TL));
    about(&it, SOL_COMITY, TL_DEADLINE, &never, 8);
    it.control.first.cmsg_len = SIZE_MAX;
    FAILS(EINVAL, comity_sendmsg(caller, &it.message, MSG_TL));
    FAILS(EBADF, comity_sendmsg(listener, one(&it, "x", 1), MSG_TL));
    FAILS(EBADF, comity_accept(caller, 0));
    FAILS(EFAULT, comity_write(caller, NULL, 1));
    FAILS(EINVAL, comity_write(caller, "x", SIZE_MAX));
    HOLDS(comity_write(caller, NULL, 0) == 0);
}

static void receiving(void)
{
    struct one it;
    char bytes[4];
    FAILS(EFAULT, comity_recvmsg(accepted, NULL, MSG_TL));
    FAILS(EINVAL, comity_recvmsg(accepted, room(&it, bytes, 4), 0));
    FAILS(EINVAL, comity_recvmsg(accepted, one(&it, bytes, 4), MSG_TL)); /* no room for a gap */
    room(&it, bytes, 4)->msg_controllen = CMSG_LEN(sizeof(struct comity_item)) - 1;
    FAILS(EINVAL, comity_recvmsg(accepted, &it.message, MSG_TL));
    room(&it, bytes, 4)->msg_iovlen = 0;
    FAILS(EINVAL, comity_recvmsg(accepted, &it.message, MSG_TL));
    room(&it, bytes, 4)->msg_control = NULL;
    FAILS(EFAULT, comity_recvmsg(accepted, &it.message, MSG_TL));
    FAILS(EAGAIN, comity_recvmsg(accepted, room(&it, bytes, 4), MSG_TL | MSG_DONTWAIT));
    FAILS(EBADF, comity_recvmsg(listener, room(&it, bytes, 4), MSG_TL));
    FAILS(EFAULT, comity_read(accepted, NULL, 1));
    FAILS(EINVAL, comity_read(accepted, bytes, SIZE_MAX));
    HOLDS(comity_read(accepted, NULL, 0) == 0);
    struct pollfd polled = {accepted, POLLIN | POLLOUT, 0};
    HOLDS(poll(&polled, 1, 0) == 1 && polled.revents == POLLOUT);
    /* A section that is longer than its buffer is cut, and the rest is gone. */
    HOLDS(comity_sendmsg(caller, one(&it, "abcdef", 6), MSG_TL) == 1);
    HOLDS(comity_recvmsg(accepted, room(&it, bytes, 4), MSG_TL) == 1);
    struct comity_item item;
    memcpy(&item, CMSG_DATA(&it.control.first), sizeof item);
    HOLDS(it.control.first.cmsg_type == TL_DATA && it.control.first.cmsg_level == SOL_COMITY);
    HOLDS(item.length == 6 && item.number == 0 && item.count == 1 && item.reason == TL_WHOLE);
    HOLDS(item.needs == TL_NOTHING && item.source_time > 0 && item.completed > 0);
    HOLDS(item.deadline > item.source_time && item.missing == 0);
    HOLDS(it.message.msg_flags == (MSG_TL | MSG_TRUNC) && memcmp(bytes, "abcd", 4) == 0);
    FAILS(EAGAIN, comity_recvmsg(accepted, room(&it, bytes, 4), MSG_TL | MSG_DONTWAIT));
    /* A section that can never arrive in time is a gap. */
    int64_t at_once = INT64_MIN;
    one(&it, "x", 1);
    HOLDS(comity_sendmsg(caller, about(&it, SOL_COMITY, TL_DEADLINE, &at_once, 8), MSG_TL) == 1);
    HOLDS(comity_recvmsg(accepted, room(&it, NULL, 9), MSG_TL) == 1);
    memcpy(&item, CMSG_DATA(&it.control.first), sizeof item);
    HOLDS(it.control.first.cmsg_type == TL_GAP && item.number == 1 && item.count == 1);
    HOLDS(item.reason != TL_WHOLE && it.section.iov_len == 0 && it.section.iov_base == NULL);
}

static void watching(void)
{
    struct comity_statistics counted;
    unsigned char more[sizeof counted + 64];
    char text[4] = "___";
    FAILS(EFAULT, comity_stats(caller, NULL, sizeof counted));
    FAILS(EBADF, comity_stats(listener, &counted, sizeof counted));
    HOLDS(comity_stats(caller, NULL, 0) == 0);
    memset(more, 0xff, sizeof more);
    HOLDS(comity_stats(caller, (struct comity_statistics *)more, sizeof(double)) == 0);
    HOLDS(more[sizeof(double)] == 0xff);
    HOLDS(comity_stats(caller, (struct comity_statistics *)more, sizeof more) == 0);
    HOLDS(more[sizeof counted] == 0 && more[sizeof more - 1] == 0);
    HOLDS(comity_stats(caller, &counted, sizeof counted) == 0);
    HOLDS(counted.submitted_sections == 2 && counted.age_ms > 0);
    HOLDS(comity_stats_json(caller, NULL, 0) > 100);
    FAILS(EFAULT, comity_stats_json(caller, NULL, 1));
    HOLDS(comity_stats_json(caller, text, 1) > 100 && text[0] == 0 && text[1] == '_');
    HOLDS(comity_stats_json(caller, text, 3) > 100 && strcmp(text, "{\"") == 0);
    HOLDS(comity_peer_address(caller, NULL, 0) > 9 && comity_stream_name(caller, NULL, 0) == 0);
    FAILS(EBADF, comity_peer_address(listener, text, 3));
    HOLDS(comity_target_bitrate(caller) >= 0);
    HOLDS(comity_encoder_bitrate(caller, 0) >= 0);
    HOLDS(comity_encoder_bitrate(caller, INT64_MAX) >= 0);
    FAILS(EINVAL, comity_encoder_bitrate(caller, -1));
    FAILS(EBADF, comity_encoder_bitrate(listener, 0));
}

static int has_ended;

static void *wait_for_item(void *unused)
{
    struct one it;
    (void)unused;
    ssize_t count = comity_recvmsg(accepted, room(&it, NULL, 0), MSG_TL);
    __atomic_store_n(&has_ended, 1, __ATOMIC_SEQ_CST);
    return (void *)(intptr_t)(count == -1 ? errno : 0);
}

static void on_signal(int number) { (void)number; }

/* Calls that wait end by a signal, and by a close in another thread. */
static void interrupted(void)
{
    pthread_t thread;
    void *ended;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, NULL);
    HOLDS(pthread_create(&thread, NULL, wait_for_item, NULL) == 0);
    while (!__atomic_load_n(&has_ended, __ATOMIC_SEQ_CST)) { /* one comes while it waits */
        pthread_kill(thread, SIGUSR1);
        sched_yield();
    }
    HOLDS(pthread_join(thread, &ended) == 0 && (intptr_t)ended == EINTR);
    HOLDS(pthread_create(&thread, NULL, wait_for_item, NULL) == 0);
    HOLDS(comity_close(accepted) == 0);
    HOLDS(pthread_join(thread, &ended) == 0 && (intptr_t)ended == EBADF);
}

#define SENDERS 2
#define EACH 500

static void *send_many(void *stream)
{
    struct one it;
    uint16_t number = (uint16_t)(intptr_t)stream;
    char bytes[2000] = {0};
    for (int i = 0; i < EACH; i++) {
        one(&it, bytes, sizeof bytes);
        HOLDS(comity_sendmsg(caller, about(&it, SOL_COMITY, TL_STREAM, &number, 2), MSG_TL) == 1);
    }
    return NULL;
}

static void *receive_many(void *unused)
{
    struct one it;
    intptr_t count = 0;
    ssize_t received;
    (void)unused;
    while ((received = comity_recvmsg(accepted, room(&it, NULL, 0), MSG_TL)) > 0) {
        HOLDS(it.control.first.cmsg_type == TL_DATA && it.section.iov_len == 2000);
        HOLDS(memchr(it.section.iov_base, 1, 2000) == NULL);
        count += received;
    }
    HOLDS(received == 0);
    return (void *)count;
}

/* Two threads send, and two receive, over one connection. */
static void shared(void)
{
    pthread_t senders[SENDERS], receivers[2];
    void *count;
    intptr_t all = 0;
    for (intptr_t i = 0; i < SENDERS; i++)
        HOLDS(pthread_create(&senders[i], NULL, send_many, (void *)i) == 0);
    for (int i = 0; i < 2; i++)
        HOLDS(pthread_create(&receivers[i], NULL, receive_many, NULL) == 0);
    for (int i = 0; i < SENDERS; i++)
        HOLDS(pthread_join(senders[i], NULL) == 0);
    HOLDS(comity_shutdown(caller, -1) == 0);
    for (int i = 0; i < 2; i++) {
        HOLDS(pthread_join(receivers[i], &count) == 0);
        all += (intptr_t)count;
    }
    HOLDS(all == SENDERS * EACH);
    struct one it;
    FAILS(EPIPE, comity_sendmsg(caller, one(&it, "x", 1), MSG_TL));
    FAILS(EPIPE, comity_write(caller, "x", 1));
    HOLDS(comity_shutdown(caller, 0) == 0);
}

/* A shutdown that is not done in time can be repeated, and sends nothing more. */
static void finishing(void)
{
    struct one it;
    called(); /* the peer acknowledges nothing before it accepts */
    HOLDS(comity_write(caller, "these bytes are no transport stream", 35) == 35);
    FAILS(ETIMEDOUT, comity_shutdown(caller, 0));
    FAILS(EPIPE, comity_write(caller, "x", 1));
    FAILS(EPIPE, comity_sendmsg(caller, one(&it, "x", 1), MSG_TL));
    char bytes[64];
    accepted = comity_accept(listener, 0);
    HOLDS(comity_read(accepted, bytes, 6) == 6 && memcmp(bytes, "these ", 6) == 0);
    struct pollfd polled = {accepted, POLLIN, 0};
    HOLDS(poll(&polled, 1, 0) == 1); /* the rest of a section */
    HOLDS(comity_read(accepted, bytes, 64) == 29);
    HOLDS(comity_shutdown(caller, -1) == 0);
    HOLDS(comity_read(accepted, bytes, 64) == 0);
    HOLDS(comity_read(accepted, bytes, 64) == 0);
    HOLDS(comity_close(caller) == 0 && comity_close(accepted) == 0 && comity_close(listener) == 0);
}

static void closed(void)
{
    struct one it;
    char byte;
    struct comity_statistics counted;
    HOLDS(comity_close(caller) == 0 && comity_close(accepted) == 0 && comity_close(listener) == 0);
    FAILS(EBADF, comity_sendmsg(caller, one(&it, "x", 1), MSG_TL));
    FAILS(EBADF, comity_recvmsg(caller, room(&it, NULL, 0), MSG_TL));
    FAILS(EBADF, comity_write(caller, "x", 1));
    FAILS(EBADF, comity_read(caller, &byte, 1));
    FAILS(EBADF, comity_accept(listener, 0));
    FAILS(EBADF, comity_shutdown(caller, 0));
    FAILS(EBADF, comity_stats(caller, &counted, sizeof counted));
    FAILS(EBADF, comity_stats_json(caller, &byte, 1));
    FAILS(EBADF, comity_target_bitrate(caller));
    FAILS(EBADF, comity_encoder_bitrate(caller, 0));
    FAILS(EBADF, comity_local_address(caller, &byte, 1));
    FAILS(EBADF, comity_peer_address(caller, &byte, 1));
    FAILS(EBADF, comity_stream_name(caller, &byte, 1));
    FAILS(EBADF, comity_close(caller));
    /* A user who closes the number with close, and opens another file with it, keeps that file. */
    int open = comity_listen("comity://127.0.0.1:0" SETTINGS, NULL, 0);
    HOLDS(open >= 0 && close(open) == 0);
    HOLDS(dup2(STDERR_FILENO, open) == open);
    FAILS(EBADF, comity_close(open));
    HOLDS(fcntl(open, F_GETFD) != -1);
}

int main(void)
{
    opening();
    refused();
    connected();
    sending();
    receiving();
    watching();
    interrupted();
    HOLDS(comity_close(caller) == 0 && comity_close(listener) == 0);
    finishing();
    connected();
    shared();
    closed();
    return 0;
}
