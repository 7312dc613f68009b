/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the kernel's types that Libra uses. The loader corrects every offset with the BTF of
 * the running kernel (CO-RE), so these definitions need neither order nor padding.
 */
#ifndef COMITY_KERNEL_H
#define COMITY_KERNEL_H

#include "types.h"

typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_F_NO_PREALLOC = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	AF_INET = 2,
	IPPROTO_TCP = 6,
	TCP_CONGESTION = 13,
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
};

#define PRESERVED __attribute__((preserve_access_index))

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
} PRESERVED;

struct ns_common {
	unsigned int inum;
} PRESERVED;

struct net {
	struct ns_common ns;
} PRESERVED;

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} PRESERVED;

struct sock {
	struct sock_common __sk_common;
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
} PRESERVED;

struct inet_sock {
	struct sock sk;
} PRESERVED;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
} PRESERVED;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u16 tcp_header_len;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 max_packets_out;
	u32 packets_out;
	u32 srtt_us;
	u32 rate_delivered;
	u32 rate_interval_us;
	u64 tcp_mstamp;
	u8 is_cwnd_limited : 1;
} PRESERVED;

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
} PRESERVED;

enum tcp_ca_event {
	CA_EVENT_LOSS = 3,
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

struct bpf_iter_meta {
	struct seq_file *seq;
} PRESERVED;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct sock *sk;
	void *value;
} PRESERVED;

struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	void *value;
} PRESERVED;

/* Not the kernel's type: the first word of the view that the verifier gives to programs. */
struct bpf_sock_ops {
	__u32 op;
};

#endif
