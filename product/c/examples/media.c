/*
 * Sends a transport stream from standard input, or receives one to standard output.
 *
 *     cc media.c -o media $(pkg-config --cflags --libs comity)
 *     ./media receive 'comity://:9000?passphrase=@secret' | ffplay -
 *     ffmpeg -re -i film.mp4 -c copy -f mpegts - | ./media send 'comity://127.0.0.1:9000?passphrase=@secret'
 */
#include <comity.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char piece[65536];

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, comity_error());
    return 1;
}

static int send_media(const char *uri)
{
    int connection = comity_connect(uri, NULL, 0);
    if (connection < 0)
        return fail("connect");
    ssize_t length;
    while ((length = read(STDIN_FILENO, piece, sizeof piece)) > 0)
        if (comity_write(connection, piece, length) < 0)
            return fail("write");
    if (comity_shutdown(connection, -1) < 0)
        return fail("shutdown");
    return comity_close(connection);
}

static int receive(const char *uri)
{
    int listener = comity_listen(uri, NULL, 0);
    if (listener < 0)
        return fail("listen");
    char address[64];
    comity_local_address(listener, address, sizeof address);
    fprintf(stderr, "listening at %s\n", address);
    int connection = comity_accept(listener, 0);
    if (connection < 0)
        return fail("accept");
    ssize_t length;
    while ((length = comity_read(connection, piece, sizeof piece)) > 0)
        if (fwrite(piece, 1, length, stdout) != (size_t)length)
            return 1;
    if (length < 0)
        return fail("read");
    comity_close(connection);
    comity_close(listener);
    return fflush(stdout) != 0;
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "send") == 0)
        return send_media(arguments[2]);
    if (count == 3 && strcmp(arguments[1], "receive") == 0)
        return receive(arguments[2]);
    fprintf(stderr, "usage: media send URI | media receive URI\n");
    return 2;
}
