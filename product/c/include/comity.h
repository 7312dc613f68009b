/*
 * Comity: media with deadlines over UDP. Link with -lcomity, or with what `pkg-config comity` says.
 *
 * Made from product/c/src by `COMITY_UPDATE=1 cargo test -p comity-c header`. Do not edit.
 *
 * A connection and a listener are descriptors. They work in poll, epoll, libuv and GLib together
 * with files and sockets: readable if there is something to receive or to accept or the connection
 * has ended, and writable if there is room to send. Do not read or write them, and close them with
 * comity_close. As with sockets, O_NONBLOCK makes calls fail with EAGAIN instead of waiting.
 *
 * All functions may be called from any thread, also for the same descriptor. A function that fails
 * returns -1 and sets errno; comity_error says why, and what to do. EFAULT stands for a null pointer
 * and EBADF for a descriptor that is not open or of the wrong kind, in all functions.
 */

#ifndef COMITY_H
#define COMITY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/**
 * The level (`cmsg_level`) of this library's ancillary data.
 */
#define SOL_COMITY 17236

/**
 * To `comity_sendmsg`: an `int64_t` for each section, its deadline at the receiver, in nanoseconds
 * of this host's `CLOCK_MONOTONIC`. `TL_NEVER` for none. Without it, the setting `latency` after
 * the source time.
 */
#define TL_DEADLINE 1

/**
 * To `comity_sendmsg`: an `int64_t` for each section, when it was captured, in nanoseconds of
 * `CLOCK_MONOTONIC`. Without it, the time of the call.
 */
#define TL_SOURCE_TIME 2

/**
 * To `comity_sendmsg`: a `uint8_t` for each section. When not everything can arrive in time,
 * higher importance goes first. Without it, 0.
 */
#define TL_IMPORTANCE 3

/**
 * To `comity_sendmsg`: a `uint16_t` for each section, its stream. Without it, 0. The sections of a
 * stream are numbered 0, 1, 2 and so on as they are accepted.
 */
#define TL_STREAM 4

/**
 * To `comity_sendmsg`: a `uint64_t` for each section, the number of an earlier section of its
 * stream without which it is worthless. `TL_NOTHING` for none.
 */
#define TL_NEEDS 5

/**
 * From `comity_recvmsg`: a `struct comity_item` about a section that is whole.
 */
#define TL_DATA 6

/**
 * From `comity_recvmsg`: a `struct comity_item` about sections that are missing.
 */
#define TL_GAP 7

/**
 * A deadline that never comes.
 */
#define TL_NEVER INT64_MAX

/**
 * The number of no section.
 */
#define TL_NOTHING UINT64_MAX

/**
 * The flag of `comity_sendmsg` and `comity_recvmsg`: data has deadlines.
 */
#define MSG_TL 16777216

/**
 * In `comity_item`: the section is whole.
 */
#define TL_WHOLE 0

/**
 * In `comity_item`: the connection ended first.
 */
#define TL_CLOSED 1

/**
 * In `comity_item`: the sender abandoned it without a reason.
 */
#define TL_OBSOLETE 2

/**
 * In `comity_item`: its deadline, or that of the next section, has passed here.
 */
#define TL_OVERDUE 3

/**
 * In `comity_item`: its deadline has passed at the sender.
 */
#define TL_EXPIRED 4

/**
 * In `comity_item`: the sender dropped it, because it could not have arrived in time.
 */
#define TL_INFEASIBLE 5

/**
 * In `comity_item`: a section that it needs is missing.
 */
#define TL_DEPENDENCY 6

/**
 * In `comity_item`: the sender shed it as the least important, because the network was too
 * narrow.
 */
#define TL_SHED 7

/**
 * In `comity_item`: the sender withdrew it.
 */
#define TL_CANCELLED 8

/**
 * The counters of a connection. A later release may add fields at its end, and changes no others.
 * Numbers that are not known yet are 0.
 */
struct comity_statistics {
  /**
   * The age of the connection, in milliseconds.
   */
  double age_ms;
  /**
   * The smoothed round-trip time, in milliseconds.
   */
  double rtt_ms;
  /**
   * The least round-trip time, in milliseconds.
   */
  double min_rtt_ms;
  /**
   * The delay to the peer, in milliseconds: half of the least round trip, plus queueing.
   */
  double one_way_ms;
  /**
   * The bitrate at which to submit all sections, in Mb/s.
   */
  double target_mbps;
  /**
   * The measured capacity of the path, in Mb/s.
   */
  double capacity_mbps;
  /**
   * Bytes sent, with all headers.
   */
  uint64_t sent_bytes;
  /**
   * Bytes of sections retransmitted.
   */
  uint64_t retransmitted_bytes;
  /**
   * Bytes of sections in the send buffer.
   */
  uint64_t send_buffer_bytes;
  /**
   * Sections submitted.
   */
  uint64_t submitted_sections;
  /**
   * Sections whose arrival the peer has confirmed.
   */
  uint64_t arrived_sections;
  /**
   * Sections that were dropped at their deadline, or because they could not meet it.
   */
  uint64_t expired_sections;
  /**
   * Sections shed as the least important.
   */
  uint64_t shed_sections;
  /**
   * Sections dropped because they need one that is missing.
   */
  uint64_t dependent_sections;
  /**
   * Sections that were lost and not retransmitted.
   */
  uint64_t lost_sections;
  /**
   * Bytes received, with all headers.
   */
  uint64_t received_bytes;
  /**
   * Bytes of whole sections that were delivered.
   */
  uint64_t delivered_bytes;
  /**
   * Sections that were whole by their deadline.
   */
  uint64_t on_time_sections;
  /**
   * Sections that were whole only after their deadline.
   */
  uint64_t late_sections;
  /**
   * Sections that became gaps.
   */
  uint64_t gap_sections;
  /**
   * Sections that the peer had whole by their deadline, by its latest report.
   */
  uint64_t peer_on_time_sections;
  /**
   * Sections that the peer had whole only after their deadline.
   */
  uint64_t peer_late_sections;
  /**
   * Sections that became gaps at the peer.
   */
  uint64_t peer_gap_sections;
};

/**
 * A received section, or a gap. A later release may add fields at its end: `cmsg_len` says how
 * long it is.
 */
struct comity_item {
  /**
   * The number of the section in its stream: 0, 1, 2 and so on. The first number of a gap.
   */
  uint64_t number;
  /**
   * The number of sections: 1, or the size of a gap.
   */
  uint64_t count;
  /**
   * The length of the section in bytes; 0 in a gap if nothing is known of it.
   */
  uint64_t length;
  /**
   * How many of these bytes are missing; 0 for a whole section.
   */
  uint64_t missing;
  /**
   * The number of the earlier section that it needs, or `TL_NOTHING`.
   */
  uint64_t needs;
  /**
   * When it was captured, in nanoseconds of this host's `CLOCK_MONOTONIC`; 0 if unknown.
   */
  int64_t source_time;
  /**
   * Its deadline on the same clock; 0 if unknown, `TL_NEVER` for none.
   */
  int64_t deadline;
  /**
   * When its last byte arrived, on the same clock; 0 for a gap.
   */
  int64_t completed;
  /**
   * Why it is a gap, from `TL_CLOSED` to `TL_CANCELLED`; `TL_WHOLE` for a section.
   */
  uint32_t reason;
  /**
   * Its stream.
   */
  uint32_t stream;
  /**
   * Its importance.
   */
  uint32_t importance;
  /**
   * 1 if a whole section arrived after its deadline.
   */
  uint32_t is_late;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Calls the listener of a `comity://` URI.
 *
 * `uri`: as for the command `comity`, for example `comity://host:9000?latency=400ms`. `options`:
 * further settings, as names and values in turn and a null at the end; null for none. The names
 * are those of the URI's keys, see docs/reference/settings.md. A setting without such a key has
 * its own name, such as `max_memory`. `flags`: 0, or `SOCK_NONBLOCK` to return at once: the
 * descriptor is writable when the call is answered, and fails with the reason if it is not.
 *
 * Returns a descriptor, or -1 with `errno`: `EINVAL` (URI or options), `ECONNREFUSED` (refused, as
 * with a wrong passphrase), `ETIMEDOUT` (no answer within `conntimeo`), `EHOSTUNREACH`, `EINTR`,
 * `EMFILE`, and those of files with keys.
 */
int comity_connect(const char *uri, const char *const *options, int flags);

/**
 * Ends a connection after everything that was sent.
 *
 * Sends what `comity_write` still holds, and waits until every section has arrived or is too late,
 * for at most `timeout_ms` milliseconds; a negative number means the setting `linger` (1 s).
 * Nothing more can be sent. What arrived can still be received. Call `comity_close` afterwards.
 *
 * Returns 0, or -1 with `errno`: `ETIMEDOUT` (call it again, or close), `ENOTCONN` (the call is
 * not answered yet), `ECONNRESET` and others (the connection was lost first).
 */
int comity_shutdown(int connection, int timeout_ms);

/**
 * Closes a connection or a listener.
 *
 * Sections that have not arrived become gaps at the peer: call `comity_shutdown` first to deliver
 * them. Connections that a listener has accepted stay open. Calls that wait in other threads fail
 * with `EBADF`. Takes up to a second, until the peer knows it.
 *
 * Returns 0, or -1 with `errno`: `EBADF`.
 */
int comity_close(int descriptor);

/**
 * Says why the latest failed call of this thread failed, and what to do about it.
 *
 * Returns a text that is valid until another call fails in this thread; it is empty before the
 * first failure.
 */
const char *comity_error(void);

/**
 * Opens a socket that waits for callers.
 *
 * `uri`: as for the command `comity`, for example `comity://:9000?passphrase=@secret`. A host is
 * the address to listen at. `options` and `flags`: as for `comity_connect`. The descriptor is
 * readable if `comity_accept` has a connection.
 *
 * Returns a descriptor, or -1 with `errno`: `EINVAL` (URI or options), `EADDRINUSE`,
 * `EADDRNOTAVAIL`, `EACCES`, `EMFILE`, and those of files with keys.
 */
int comity_listen(const char *uri, const char *const *options, int flags);

/**
 * Accepts a caller that has proved itself.
 *
 * `flags`: 0, or `SOCK_NONBLOCK` for the new descriptor.
 *
 * Returns the descriptor of the connection, or -1 with `errno`: `EAGAIN`, `EINTR`, `EINVAL`
 * (flags), `EMFILE`.
 */
int comity_accept(int listener, int flags);

/**
 * Sends a live transport stream, or other media, as it comes.
 *
 * `bytes`, `length`: the next bytes, in pieces of any size. The library finds pictures, sound and
 * tables, gives each the deadline that the setting `latency` (120 ms) allows after its arrival,
 * and drops the least important ones if the network is too narrow, as `comity send` does. The last
 * picture of a source that pauses is sent with the next bytes, or by `comity_shutdown`.
 *
 * Returns the number of bytes taken, which is smaller than `length` only without waiting, or -1
 * with `errno`: `EAGAIN`, `EINTR`, `EILSEQ` (the media cannot be read further), `ECONNRESET`,
 * `ETIMEDOUT`, `EPIPE` and others (the connection has ended).
 */
ssize_t comity_write(int connection, const void *bytes, size_t length);

/**
 * Receives a transport stream, or other media, as bytes.
 *
 * `bytes`, `length`: where to put the next bytes. A transport stream is restored byte for byte,
 * except what is missing in it, as `comity recv` does. Do not mix it with `comity_recvmsg`.
 *
 * Returns the number of bytes, 0 at the end, or -1 with `errno`: `EAGAIN`, `EINTR`, `ECONNRESET`,
 * `ETIMEDOUT` and others (the connection was lost; everything that arrived was read).
 */
ssize_t comity_read(int connection, void *bytes, size_t length);

/**
 * Sends sections with deadlines.
 *
 * `message`: `msg_iov` has one element for each section, whose bytes are copied. `msg_control` has
 * ancillary data of the level `SOL_COMITY` or is null: `TL_DEADLINE` and others, each an array
 * with one element for each section. Other fields are ignored. `flags`: `MSG_TL`, and
 * `MSG_DONTWAIT` to send only what has room.
 *
 * Returns the number of sections that were accepted, the first ones of the message, or -1 if none
 * was, with `errno`: `EAGAIN`, `EINTR`, `EINVAL` (flags, ancillary data, an empty section),
 * `EMSGSIZE` (a section is longer than the send buffer), `EPIPE` (after `comity_shutdown`),
 * `ECONNRESET`, `ETIMEDOUT` and others (the connection was lost).
 */
ssize_t comity_sendmsg(int connection, const struct msghdr *message, int flags);

/**
 * Receives sections and gaps.
 *
 * `message`: `msg_iov` has an element for each item that may be received, and `msg_control` has
 * `CMSG_SPACE(sizeof(struct comity_item))` bytes for each. Control message `i` describes element
 * `i`: its type is `TL_DATA` for a section or `TL_GAP` for missing ones, and it has a `struct
 * comity_item`. A section is copied to `iov_base`; a longer one is cut, with `MSG_TRUNC` in
 * `msg_flags`. If `iov_base` is null, the library sets `iov_base` and `iov_len` to bytes of its
 * own, without a copy. They stay valid until the next `comity_recvmsg` of this thread. `flags`:
 * `MSG_TL`, and `MSG_DONTWAIT`.
 *
 * Waits for one item, and takes as many as have arrived. Each section of a stream is in exactly
 * one item, in the order of the stream.
 *
 * Returns the number of items, 0 at the end of the connection, or -1 with `errno`: `EAGAIN`,
 * `EINTR`, `EINVAL` (flags, or no room for an item), `ECONNRESET`, `ETIMEDOUT` and others (the
 * connection was lost; everything that arrived was received).
 */
ssize_t comity_recvmsg(int connection, struct msghdr *message, int flags);

/**
 * Returns the version of the library, for example "0.1.0".
 */
const char *comity_version(void);

/**
 * Returns the bitrate at which to submit all sections, in bit/s.
 *
 * It is smoothed, and at most the measured capacity of the path. Returns 0 before the path is
 * known, or -1 with `errno`: `ENOTCONN`.
 */
int64_t comity_target_bitrate(int connection);

/**
 * Returns the bitrate that an encoder should have now, in bit/s.
 *
 * `other_bps`: the bit/s that are sent beside its output, such as sound. Call it before each
 * picture, and set the encoder if the value differs from the latest. It leaves head room below the
 * target, falls at once, rises in steps, and stays within the settings `encmin`, `encmax`,
 * `enchead` and `encupdates`, as docs/guide/encoder.md describes.
 *
 * Returns 0 before it is known, for the first second, or -1 with `errno`: `ENOTCONN`, `EINVAL`
 * (`other_bps` is negative).
 */
int64_t comity_encoder_bitrate(int connection, int64_t other_bps);

/**
 * Fills in the counters of a connection, without waiting.
 *
 * `size`: `sizeof *statistics`. A program that was built with another release gets the fields that
 * both know, and zeros in others.
 *
 * Returns 0, or -1 with `errno`: `ENOTCONN`.
 */
int comity_stats(int connection, struct comity_statistics *statistics, size_t size);

/**
 * Puts all counters of a connection into a buffer, as JSON with the keys of
 * docs/reference/statistics.md, without waiting.
 *
 * `buffer`, `size`: as for `snprintf`: a text that is too long is cut.
 *
 * Returns the length of the whole text without its zero, or -1 with `errno`: `ENOTCONN`.
 */
ssize_t comity_stats_json(int connection, char *buffer, size_t size);

/**
 * Puts the address of this end of a connection or of a listener into a buffer, for example
 * `127.0.0.1:9000` or `[::]:9000`.
 *
 * `buffer`, `size`, and what it returns: as for `comity_stats_json`.
 */
ssize_t comity_local_address(int descriptor, char *buffer, size_t size);

/**
 * Puts the address of the peer into a buffer.
 *
 * `buffer`, `size`, and what it returns: as for `comity_stats_json`.
 */
ssize_t comity_peer_address(int connection, char *buffer, size_t size);

/**
 * Puts the name of the stream that the caller requests or sends (`streamid`) into a buffer; empty
 * without one. A server routes by it.
 *
 * `buffer`, `size`, and what it returns: as for `comity_stats_json`.
 */
ssize_t comity_stream_name(int connection, char *buffer, size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* COMITY_H */
