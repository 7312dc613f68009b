/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs share: the socket behind a pointer, its line for the loader, and cgroups. */
#ifndef COMITY_SOCKET_H
#define COMITY_SOCKET_H

#include "fixed.h"
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

INLINE struct tcp_sock *tcp_of(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* As tcp_is_cwnd_limited(). */
INLINE int is_window_limited(const struct tcp_sock *tp, int is_slow_start)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return is_slow_start && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Begins the line of a flow; src/line.rs reads these names and values. */
INLINE void print_socket(struct seq_file *out, struct tcp_sock *tp)
{
	struct sock_common *ends = &tp->inet_conn.icsk_inet.sk.__sk_common;

	if (ends->skc_family == AF_INET)
		BPF_SEQ_PRINTF(out, "local=%pI4 remote=%pI4", &ends->skc_rcv_saddr, &ends->skc_daddr);
	else
		BPF_SEQ_PRINTF(out, "local=%pI6c remote=%pI6c", &ends->skc_v6_rcv_saddr,
			       &ends->skc_v6_daddr);
	BPF_SEQ_PRINTF(out, " local_port=%u remote_port=%u namespace=%u", ends->skc_num,
		       __builtin_bswap16(ends->skc_dport), ends->skc_net.net->ns.inum);
	BPF_SEQ_PRINTF(out, " cwnd=%u ssthresh=%u mss=%u srtt_us=%u", tp->snd_cwnd,
		       tp->snd_ssthresh, tp->mss_cache, tp->srtt_us >> 3);
}

/* Gives a new connection of a cgroup to the controller called `name`. */
INLINE int choose(struct bpf_sock_ops *ops, char *name, int size)
{
	if (ops->op == BPF_SOCK_OPS_TCP_CONNECT_CB ||
	    ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		bpf_setsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, name, size);
	return 1;
}

#endif
