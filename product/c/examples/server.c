/*
 * Serves any number of senders in one thread, with epoll: counts what each sends.
 *
 *     cc server.c -o server $(pkg-config --cflags --libs comity)
 *     ./server 'comity://:9000?passphrase=@secret' [SENDERS]
 *
 * Ends after so many senders; without a number, never.
 */
#include <comity.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static int watch(int epoll, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = descriptor}};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

/* Receives the items that have arrived. Returns 1 at the end of the connection. */
static int receive(int connection)
{
    for (;;) {
        union {
            struct cmsghdr first;
            char bytes[CMSG_SPACE(sizeof(struct comity_item))];
        } control;
        struct iovec section = {NULL, 0};
        struct msghdr message = {0};
        message.msg_iov = &section;
        message.msg_iovlen = 1;
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        ssize_t count = comity_recvmsg(connection, &message, MSG_TL);
        if (count < 0 && errno == EAGAIN)
            return 0;
        if (count < 0)
            fprintf(stderr, "%d: %s\n", connection, comity_error());
        if (count <= 0)
            return 1;
    }
}

static void report(int connection)
{
    char peer[64], name[256];
    struct comity_statistics counted;
    comity_peer_address(connection, peer, sizeof peer);
    comity_stream_name(connection, name, sizeof name);
    comity_stats(connection, &counted, sizeof counted);
    printf("%s %s: %llu on time, %llu late, %llu missing\n", peer, *name ? name : "-",
           (unsigned long long)counted.on_time_sections, (unsigned long long)counted.late_sections,
           (unsigned long long)counted.gap_sections);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    if (count < 2) {
        fprintf(stderr, "usage: server URI [SENDERS]\n");
        return 2;
    }
    long senders = count > 2 ? strtol(arguments[2], NULL, 10) : -1;
    int listener = comity_listen(arguments[1], NULL, SOCK_NONBLOCK);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (listener < 0 || epoll < 0 || watch(epoll, listener) < 0) {
        fprintf(stderr, "listen: %s\n", comity_error());
        return 1;
    }
    char address[64];
    comity_local_address(listener, address, sizeof address);
    printf("listening at %s\n", address);
    fflush(stdout);
    while (senders != 0) {
        struct epoll_event events[16];
        int ready = epoll_wait(epoll, events, 16, -1);
        for (int i = 0; i < ready; i++) {
            int descriptor = events[i].data.fd;
            if (descriptor == listener) {
                int connection = comity_accept(listener, SOCK_NONBLOCK);
                if (connection >= 0)
                    watch(epoll, connection);
            } else if (receive(descriptor)) {
                report(descriptor);
                epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, NULL);
                comity_close(descriptor);
                senders -= senders > 0;
            }
        }
    }
    return comity_close(listener);
}
