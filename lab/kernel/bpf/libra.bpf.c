// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Libra as a congestion control of the kernel (struct_ops), with the state of every flow.
 *
 * The kernel keeps window and threshold, recovers from losses and reduces the window to the
 * threshold (PRR). This program computes the growth, the threshold and the pacing.
 */
#include "libra.h"
#include "socket.h"

char _license[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct libra_parameters);
} parameters SEC(".maps");

/* An address behind the length of a prefix; IPv4 has ::ffff:0:0/96. */
struct libra_destination {
	u32 length;
	u32 address[4];
};

/* C of destinations in kb/s; src/libra/destination.rs has the same layout. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct libra_destination);
	__type(value, u64);
} destinations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct libra_flow);
} flows SEC(".maps");

/* The kernel's own Reno, for a flow that got no memory for its state. */
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;

INLINE struct libra_flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, 0, 0);
}

INLINE struct libra_parameters *parameters_of_all(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&parameters, &first);
}

/* C as it is configured for the peer of a socket; 0 to estimate it. */
INLINE u64 configured_kbps(const struct sock *sk, const struct libra_parameters *of)
{
	const struct sock_common *ends = &sk->__sk_common;
	struct libra_destination to = { .length = 128 };
	u64 *kbps;

	if (ends->skc_family == AF_INET) {
		to.address[2] = __builtin_bswap32(0xffff);
		to.address[3] = ends->skc_daddr;
	} else {
		to.address[0] = ends->skc_v6_daddr.in6_u.u6_addr32[0];
		to.address[1] = ends->skc_v6_daddr.in6_u.u6_addr32[1];
		to.address[2] = ends->skc_v6_daddr.in6_u.u6_addr32[2];
		to.address[3] = ends->skc_v6_daddr.in6_u.u6_addr32[3];
	}
	kbps = bpf_map_lookup_elem(&destinations, &to);
	return kbps ? *kbps : of->capacity_kbps;
}

/* The size of a full packet on the wire. */
INLINE u32 wire_of(const struct tcp_sock *tp)
{
	u32 address = tp->inet_conn.icsk_inet.sk.__sk_common.skc_family == AF_INET ? 20 : 40;

	return tp->mss_cache + tp->tcp_header_len + address;
}

INLINE u64 window_q32(const struct tcp_sock *tp, const struct libra_flow *flow)
{
	return ((u64)tp->snd_cwnd << 32) | flow->fraction_q32;
}

INLINE int is_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(libra_init, struct sock *sk)
{
	struct libra_parameters *of = parameters_of_all();
	struct libra_flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!flow || !of)
		return;
	/* The kernel calls this once the peer is known. */
	flow->configured_kbps = configured_kbps(sk, of);
	flow->covered_q8 = 1 << 8;
	flow->place_q16 = 1 << 15;
	if (of->pairs && sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

SEC("struct_ops")
void BPF_PROG(libra_release, struct sock *sk)
{
	bpf_sk_storage_delete(&flows, sk);
}

SEC("struct_ops")
void BPF_PROG(libra_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct libra_parameters *of = parameters_of_all();
	struct libra_flow *flow = flow_of(sk);
	int may_be_timer;

	if (!flow || !of || sample->rtt_us < 0)
		return;
	libra_on_rtt(flow, of, tp->tcp_mstamp, sample->rtt_us);
	may_be_timer = libra_on_covered(flow, sample->pkts_acked);
	libra_on_pair(flow, tp->tcp_mstamp, sample->pkts_acked, wire_of(tp), may_be_timer);
	libra_on_delivered(flow, tp->rate_delivered, wire_of(tp), tp->rate_interval_us);
}

SEC("struct_ops")
void BPF_PROG(libra_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct libra_parameters *of = parameters_of_all();
	struct libra_flow *flow = flow_of(sk);
	u64 window;

	if (!flow || !of) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (!is_window_limited(tp, is_slow_start(tp)))
		return;
	if (is_slow_start(tp)) {
		u32 room = tp->snd_ssthresh - tp->snd_cwnd;
		u32 taken = acked < room ? acked : room;
		u32 opened = tp->snd_cwnd + taken;

		tp->snd_cwnd = opened < tp->snd_cwnd_clamp ? opened : tp->snd_cwnd_clamp;
		acked -= taken;
	}
	if (!acked || !flow->rtt_us)
		return;
	window = libra_raised_q32(window_q32(tp, flow), libra_growth_q32(flow, of), acked);
	flow->fraction_q32 = window;
	window >>= 32;
	tp->snd_cwnd = window < tp->snd_cwnd_clamp ? window : tp->snd_cwnd_clamp;
}

/* The threshold after a loss. The kernel brings the window down to it. */
SEC("struct_ops")
u32 BPF_PROG(libra_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct libra_parameters *of = parameters_of_all();
	struct libra_flow *flow = flow_of(sk);
	u64 reduced;

	if (!flow || !of)
		return tcp_reno_ssthresh(sk);
	flow->reduced_q32 = window_q32(tp, flow);
	reduced = libra_reduced_q32(flow, of, flow->reduced_q32);
	flow->fraction_q32 = reduced;
	return reduced >> 32;
}

/* Behind libra_ssthresh() on a timeout: figure 2 has another threshold for it. */
SEC("struct_ops")
void BPF_PROG(libra_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct libra_flow *flow = flow_of(sk);
	u32 half;

	if (event != CA_EVENT_LOSS || !flow)
		return;
	half = flow->reduced_q32 >> 33;
	tp->snd_ssthresh = half < 2 ? 2 : half;
	flow->fraction_q32 = 0;
}

SEC("struct_ops")
u32 BPF_PROG(libra_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_of(sk);

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

/*
 * The kernel asks for the least size of a burst before it sends one, and reads the pacing rate
 * afterwards: each burst gets a random gap behind it.
 */
SEC("struct_ops")
u32 BPF_PROG(libra_min_tso_segs, struct sock *sk)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct libra_parameters *of = parameters_of_all();
	struct libra_flow *flow = flow_of(sk);
	u32 window = tp->snd_cwnd > tp->packets_out ? tp->snd_cwnd : tp->packets_out;
	u64 mean, rate;

	if (!flow || !of || !of->pairs)
		return 2;
	if (tp->srtt_us) {
		/* The kernel's own ratios: a flow at exactly window / RTT never fills its window. */
		mean = (u64)tp->mss_cache * window * (8 * SECOND_US) / tp->srtt_us;
		mean = is_slow_start(tp) ? 2 * mean : mean + mean / 5;
		rate = libra_pacing(flow, mean, bpf_get_prandom_u32());
		sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
	}
	return libra_group(flow, tp->snd_cwnd);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops libra = {
	.init = (void *)libra_init,
	.release = (void *)libra_release,
	.pkts_acked = (void *)libra_pkts_acked,
	.cong_avoid = (void *)libra_cong_avoid,
	.ssthresh = (void *)libra_ssthresh,
	.cwnd_event = (void *)libra_cwnd_event,
	.undo_cwnd = (void *)libra_undo_cwnd,
	.min_tso_segs = (void *)libra_min_tso_segs,
	.name = "libra",
};

/*
 * One line for each flow of Libra on this machine, in any network namespace, to whoever reads the
 * pinned link: src/libra/flow.rs reads these names and values.
 */
SEC("iter/bpf_sk_storage_map")
int libra_status(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct seq_file *out = ctx->meta->seq;
	struct libra_flow *flow = ctx->value;
	struct sock *sk = ctx->sk;
	struct tcp_sock *tp;
	struct libra_parameters *of = parameters_of_all();
	struct libra_capacity capacity;
	struct libra_extremes range;
	u64 alpha_milli;

	if (!sk || !flow || !of)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	capacity = libra_capacity(flow);
	range = libra_range(flow);
	alpha_milli = mul_shift(flow->alpha_q16, 1000, 16);
	print_socket(out, tp);
	BPF_SEQ_PRINTF(out, " rtt_us=%u", flow->rtt_us);
	BPF_SEQ_PRINTF(out, " rtt_min_us=%u rtt_max_us=%u beta_q16=%u alpha_milli=%llu",
		       range.min_us, range.max_us, flow->beta_q16, alpha_milli);
	BPF_SEQ_PRINTF(out, " capacity_kbps=%llu capacity_is_exact=%u pacing_bytes_per_s=%llu\n",
		       capacity.kbps, capacity.is_exact,
		       (u64)tp->inet_conn.icsk_inet.sk.sk_pacing_rate);
	return 0;
}

/* The parameters in the same form; src/libra/parameters.rs reads them. */
SEC("iter/bpf_map_elem")
int libra_parameters(struct bpf_iter__bpf_map_elem *ctx)
{
	struct seq_file *out = ctx->meta->seq;
	struct libra_parameters *of = ctx->value;

	if (!of)
		return 0;
	BPF_SEQ_PRINTF(out, "x_q16=%llu capacity_kbps=%llu memory_us=%llu", of->x_q16,
		       of->capacity_kbps, of->memory_us);
	BPF_SEQ_PRINTF(out, " a_us=%u b_us=%u y_q16=%u pairs=%u\n", of->a_us, of->b_us, of->y_q16,
		       of->pairs);
	return 0;
}

/* Gives every new connection of a cgroup to Libra. */
SEC("sockops")
int libra_cgroup(struct bpf_sock_ops *ops)
{
	char name[] = "libra";

	return choose(ops, name, sizeof(name));
}
