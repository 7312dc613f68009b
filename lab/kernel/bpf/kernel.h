/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the kernel's types that the programs use. The loader corrects every offset with the BTF of
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
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_F_NO_PREALLOC = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_PARSE_HDR_OPT_CB = 13,
	BPF_SOCK_OPS_HDR_OPT_LEN_CB = 14,
	BPF_SOCK_OPS_WRITE_HDR_OPT_CB = 15,
	BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG = 32,
	BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG = 64,
	BPF_WRITE_HDR_TCP_CURRENT_MSS = 1,
	AF_INET = 2,
	IPPROTO_TCP = 6,
	TCP_CONGESTION = 13,
	TCP_BPF_SOCK_OPS_CB_FLAGS = 1008,
	TCP_CA_RECOVERY = 3,
	TCP_CA_LOSS = 4,
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
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_wnd;
	u32 max_window;
	u32 write_seq;
	u32 sacked_out;
	u32 data_segs_out;
	u8 bpf_sock_ops_cb_flags;
	u32 srtt_us;
	u32 rate_delivered;
	u32 rate_interval_us;
	u64 tcp_mstamp;
	u8 is_cwnd_limited : 1;
} PRESERVED;

struct tcphdr {
	__be16 source;
	__be16 dest;
	__be32 seq;
	__be32 ack_seq;
	u8 offset;
	u8 flags;
};

struct sk_buff {
	/* The kernel's `sk_buff_data_t`, an offset on machines of 64 bits. */
	u32 end;
	unsigned char *head;
	char cb[48];
} PRESERVED;

struct skb_shared_info {
	u16 gso_segs;
} PRESERVED;

/* What TCP keeps in `cb`. */
struct tcp_skb_cb {
	u16 tcp_gso_segs;
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
	void (*set_state)(struct sock *sk, u8 state);
	void (*cong_control)(struct sock *sk);
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

/* The view of a socket that the verifier gives to programs: the kernel's layout, as in its UAPI. */
struct bpf_sock_ops {
	__u32 op;
	__u32 args[4];
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 is_fullsock;
	__u32 snd_cwnd;
	__u32 srtt_us;
	__u32 bpf_sock_ops_cb_flags;
	__u32 state;
	__u32 rtt_min;
	__u32 snd_ssthresh;
	__u32 rcv_nxt;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 mss_cache;
	__u32 ecn_flags;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 total_retrans;
	__u32 segs_in;
	__u32 data_segs_in;
	__u32 segs_out;
	__u32 data_segs_out;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 sk_txhash;
	__u64 bytes_received;
	__u64 bytes_acked;
	__u64 sk;
	__u64 skb_data;
	__u64 skb_data_end;
	__u32 skb_len;
	__u32 skb_tcp_flags;
	__u64 skb_hwtstamp;
};

/* What stands behind that view. */
struct bpf_sock_ops_kern {
	struct sk_buff *skb;
} PRESERVED;

#endif
