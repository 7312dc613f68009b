// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP-Real in the kernel: both halves in one object, with one state for each socket.
 *
 * real_options (sockops, on a cgroup) writes the wave option on data segments and the level on
 * acknowledgements, and reads both. The controller (struct_ops) sets the window of the level.
 */
#include "real.h"
#include "socket.h"

char _license[] SEC("license") = "GPL";

/* The kernel's tcp_flags of a segment. */
#define FIN 0x01
#define SYN 0x02
#define PSH 0x08
/* A header without options. */
#define HEADER_BYTES 20
/* After this many data segments without an option, nothing writes options for the socket. */
#define MAX_UNTAGGED 32

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct real_parameters);
} parameters SEC(".maps");

struct real_flow {
	struct real_meter meter;
	struct real_sender sender;
	/* What was acknowledged at the last ACK. */
	u32 una;
	/* The kernel's count of data segments behind the last one with a wave option. */
	u32 tagged_at;
	/* Segments with malformed options, which count as none. */
	u32 malformed;
	/* Whether the controller is Real's, and whether it has given the flow to Reno. */
	u8 is_sender;
	u8 is_fallback;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct real_flow);
} flows SEC(".maps");

extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

INLINE struct real_parameters *parameters_of_all(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&parameters, &first);
}

INLINE struct real_flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, 0, 0);
}

INLINE int is_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/* The flow has no peer, or nobody writes its options: the kernel's own Reno goes on with it. */
INLINE void fall_back(struct sock *sk, struct real_flow *flow)
{
	char reno[] = "reno";

	if (flow)
		flow->is_fallback = 1;
	bpf_setsockopt(sk, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof(reno));
}

SEC("struct_ops")
void BPF_PROG(real_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct real_flow *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct real_parameters *of = parameters_of_all();
	int flags = tp->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG |
		    BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;

	if (!flow || !of ||
	    bpf_setsockopt(sk, IPPROTO_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags))) {
		fall_back(sk, flow);
		return;
	}
	flow->sender = real_sender_of(of);
	flow->una = tp->snd_una;
	flow->tagged_at = tp->data_segs_out;
	flow->is_sender = 1;
	flow->is_fallback = 0;
}

SEC("struct_ops")
void BPF_PROG(real_release, struct sock *sk)
{
	struct real_flow *flow = flow_of(sk);

	if (flow)
		flow->is_sender = 0;
}

INLINE void set_window(struct tcp_sock *tp, const struct real_sender *sender)
{
	u32 window = real_window(sender, tp->mss_cache);

	tp->snd_cwnd = window < tp->snd_cwnd_clamp ? window : tp->snd_cwnd_clamp;
}

/* On each ACK, behind real_options: the level of this ACK has arrived. */
SEC("struct_ops")
void BPF_PROG(real_cong_control, struct sock *sk)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct real_parameters *of = parameters_of_all();
	struct real_flow *flow = flow_of(sk);
	struct real_sender *sender;
	u32 acknowledged;

	if (!flow || !of)
		return;
	sender = &flow->sender;
	acknowledged = tp->snd_una - flow->una;
	if (tp->snd_una != flow->una)
		sender->is_duplicate_seen = 0;
	else if (tp->sacked_out)
		sender->is_duplicate_seen = 1;
	flow->una = tp->snd_una;
	if (sender->is_awaiting && !is_before(tp->snd_una, sender->awaited))
		real_on_acknowledged(sender);
	if (real_is_alone(sender) || (s32)(tp->data_segs_out - flow->tagged_at) > MAX_UNTAGGED) {
		fall_back(sk, flow);
		return;
	}
	real_begin(sender, of, tp->snd_cwnd, tp->mss_cache);
	if (is_window_limited(tp, sender->is_opening))
		real_on_growth(sender, of, acknowledged, tp->mss_cache);
	set_window(tp, sender);
}

/* The kernel says so on each loss, and on a timeout after it has set the window to one segment. */
SEC("struct_ops")
void BPF_PROG(real_set_state, struct sock *sk, u8 state)
{
	struct real_parameters *of = parameters_of_all();
	struct real_flow *flow = flow_of(sk);
	struct tcp_sock *tp = tcp_of(sk);

	if (!flow || !of)
		return;
	real_begin(&flow->sender, of, tp->snd_cwnd, tp->mss_cache);
	if (state == TCP_CA_LOSS)
		real_on_timeout(&flow->sender, of, tp->mss_cache);
	else if (state == TCP_CA_RECOVERY)
		real_end_opening(&flow->sender, of, tp->mss_cache);
	else
		return;
	set_window(tp, &flow->sender);
}

/* Only Reno uses the threshold, after a fallback. */
SEC("struct_ops")
u32 BPF_PROG(real_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
u32 BPF_PROG(real_undo_cwnd, struct sock *sk)
{
	return tcp_of(sk)->snd_cwnd;
}

/*
 * The kernel asks before it sizes a packet by the pacing rate. Without pacing the rate has no other
 * use: a rate of one segment in the kernel's unit of time (about a millisecond) makes each packet
 * one segment, which has an option of its own. With pacing the rate is unlimited, since waves that
 * are spread over the round trip show the sender, not the path.
 */
SEC("struct_ops")
u32 BPF_PROG(real_min_tso_segs, struct sock *sk)
{
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_rate = (unsigned long)tcp_of(sk)->mss_cache << 10;
	else
		sk->sk_pacing_rate = sk->sk_max_pacing_rate;
	return 1;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops real = {
	.init = (void *)real_init,
	.release = (void *)real_release,
	.cong_control = (void *)real_cong_control,
	.set_state = (void *)real_set_state,
	.ssthresh = (void *)real_ssthresh,
	.undo_cwnd = (void *)real_undo_cwnd,
	.min_tso_segs = (void *)real_min_tso_segs,
	.name = "real",
};

/* Copies the options of a segment and reads them. */
INLINE void read_options(const struct tcphdr *header, const u8 *end,
			 struct real_reading *reading)
{
	const u8 *options = (const u8 *)header + HEADER_BYTES;

	for (int i = 0; i < REAL_MAX_OPTION_BYTES / 4; i++) {
		if (options + 4 * i + 4 > end)
			break;
		__builtin_memcpy(&reading->bytes[4 * i], options + 4 * i, 4);
	}
	bpf_loop(REAL_MAX_OPTION_BYTES, real_read_option, reading, 0);
}

/* How many segments the kernel has merged into an arrival. */
INLINE u32 merged(struct bpf_sock_ops *ops)
{
	struct bpf_sock_ops_kern *kern = bpf_cast_to_kern_ctx(ops);
	struct sk_buff *skb = kern->skb;
	struct skb_shared_info *shared = (void *)(skb->head + skb->end);
	u16 segments = BPF_CORE_READ(shared, gso_segs);

	return segments ? segments : 1;
}

INLINE void on_arrival(struct bpf_sock_ops *ops)
{
	struct real_parameters *of = parameters_of_all();
	struct real_reading reading = {};
	struct real_options found;
	const struct tcphdr *header = (void *)(long)ops->skb_data;
	const u8 *end = (void *)(long)ops->skb_data_end;
	struct bpf_sock *sk = (void *)ops->sk;
	struct real_flow *flow;
	u32 acknowledged;

	if (!of || !sk || (const u8 *)header + HEADER_BYTES > end)
		return;
	read_options(header, end, &reading);
	found = reading.found;
	if (!found.has_wave && !found.level && !found.is_malformed)
		return;
	flow = bpf_sk_storage_get(&flows, sk, 0, found.has_wave ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	if (!flow)
		return;
	if (found.is_malformed) {
		flow->malformed++;
		return;
	}
	acknowledged = __builtin_bswap32(header->ack_seq);
	/* A reordered acknowledgement has an old level. */
	if (found.level && flow->is_sender && !is_before(acknowledged, ops->snd_una) &&
	    !is_before(ops->snd_nxt, acknowledged))
		real_on_report(&flow->sender, of, found.level);
	if (found.has_wave && ops->skb_len > (u32)(header->offset >> 4) * 4) {
		real_on_arrival(&flow->meter, of, bpf_ktime_get_ns(), found.wave, merged(ops));
		if (flow->meter.now.level_q32)
			bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags |
							       BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
	}
}

/* Reserves room: without a packet, for a full data segment, from which the kernel has its size. */
INLINE void reserve(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = (void *)ops->sk;
	struct real_flow *flow;
	int has_data = ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || ops->skb_len;

	if (!sk || (ops->skb_tcp_flags & SYN))
		return;
	flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!flow || (!flow->is_sender && !flow->meter.now.level_q32)) {
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags &
						       ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		return;
	}
	if (flow->is_sender && has_data)
		bpf_reserve_hdr_opt(ops, REAL_WAVE_BYTES, 0);
	if (flow->meter.now.level_q32)
		bpf_reserve_hdr_opt(ops, REAL_LEVEL_BYTES, 0);
}

/*
 * Whether nothing follows a packet for now. The source has no more, if the packet ends what it
 * wrote and the kernel has pushed it; without the push it is still writing. Or the peer's window is
 * closing.
 */
INLINE int ends_wave(const struct tcp_sock *tp, u32 end, u8 flags)
{
	u64 window = (u64)tp->snd_cwnd * tp->mss_cache;

	if (end == tp->write_seq)
		return flags & (PSH | FIN);
	if (window > tp->max_window)
		window = tp->max_window;
	return tp->snd_wnd < window / 2 && tp->snd_una + tp->snd_wnd - end < tp->mss_cache;
}

INLINE void write(struct bpf_sock_ops *ops)
{
	struct real_parameters *of = parameters_of_all();
	const struct tcphdr *header = (void *)(long)ops->skb_data;
	struct bpf_sock *sk = (void *)ops->sk;
	struct real_flow *flow;
	u16 written = 0, level;

	if (!of || !sk || (ops->skb_tcp_flags & SYN) ||
	    (void *)header + HEADER_BYTES > (void *)(long)ops->skb_data_end)
		return;
	flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!flow)
		return;
	if (flow->is_sender && ops->skb_len > (u32)(header->offset >> 4) * 4) {
		struct bpf_sock_ops_kern *kern = bpf_cast_to_kern_ctx(ops);
		struct tcp_skb_cb *block = (void *)kern->skb->cb;
		u32 count = BPF_CORE_READ(block, tcp_gso_segs);
		u32 end = __builtin_bswap32(header->seq) + ops->skb_len -
			  (header->offset >> 4) * 4 + (header->flags & FIN);
		struct real_sender *sender = &flow->sender, after = *sender;
		struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
		struct real_wave wave;
		u8 option[REAL_WAVE_BYTES] = { REAL_KIND, REAL_WAVE_BYTES };

		if (!tp)
			return;
		wave = real_tag(&after, of, tp->snd_cwnd, count ? count : 1,
				ends_wave(tp, end, header->flags));
		*(u16 *)&option[2] = __builtin_bswap16(wave.number);
		*(u16 *)&option[4] = __builtin_bswap16(wave.segments);
		*(u16 *)&option[6] = __builtin_bswap16(wave.position);
		/* Beside three SACK blocks it has no room, and the segment has no place in a wave. */
		if (!bpf_store_hdr_opt(ops, option, sizeof(option), 0)) {
			if (!after.is_awaiting && wave.segments > 1 && wave.position == wave.segments) {
				after.is_awaiting = 1;
				after.awaited = end;
			}
			*sender = after;
			flow->tagged_at = tp->data_segs_out + count;
			written = wave.number;
		}
	}
	level = real_report(&flow->meter);
	/* The kernel takes a second option of the kind with the same two bytes for a repetition. */
	if (level && level != written) {
		u8 option[REAL_LEVEL_BYTES] = { REAL_KIND, REAL_LEVEL_BYTES, level >> 8, level };

		bpf_store_hdr_opt(ops, option, sizeof(option), 0);
	}
}

/* Both options, for every connection of a cgroup. */
SEC("sockops")
int real_options(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags |
						       BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		on_arrival(ops);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		reserve(ops);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		write(ops);
		break;
	}
	return 1;
}

/* Gives every new connection of a cgroup to Real. */
SEC("sockops")
int real_cgroup(struct bpf_sock_ops *ops)
{
	char name[] = "real";

	return choose(ops, name, sizeof(name));
}

/* A line for each socket with a half of Real; src/real/flow.rs reads these names and values. */
SEC("iter/bpf_sk_storage_map")
int real_status(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct seq_file *out = ctx->meta->seq;
	struct real_flow *flow = ctx->value;
	struct sock *sk = ctx->sk;
	struct tcp_sock *tp;

	if (!sk || !flow)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	print_socket(out, tp);
	BPF_SEQ_PRINTF(out, " is_sender=%u is_fallback=%u is_reported=%u level=%u wave=%u",
		       flow->is_sender, flow->is_fallback,
		       flow->sender.is_reported && !flow->sender.is_opening, flow->sender.level,
		       flow->sender.wave);
	BPF_SEQ_PRINTF(out, " meter_level_q32=%llu meter_threshold_q32=%llu meter_wave=%u",
		       flow->meter.now.level_q32, flow->meter.now.threshold_q32, flow->meter.number);
	BPF_SEQ_PRINTF(out, " rate_segments=%u rate_ns=%llu malformed=%u\n",
		       flow->meter.now.rate_segments, flow->meter.now.rate_ns, flow->malformed);
	return 0;
}

/* The parameters in the same form; src/real/parameters.rs reads them. */
SEC("iter/bpf_map_elem")
int real_parameters(struct bpf_iter__bpf_map_elem *ctx)
{
	struct seq_file *out = ctx->meta->seq;
	struct real_parameters *of = ctx->value;

	if (!of)
		return 0;
	BPF_SEQ_PRINTF(out, "max_level=%u threshold_share_q16=%u opening=%u fractions=%u",
		       of->max_level, of->threshold_share_q16, of->opening, of->fractions);
	BPF_SEQ_PRINTF(out, " compare_with_timeouts=%u level_of_wave=%u fixed_waves=%u",
		       of->compare_with_timeouts, of->level_of_wave, of->fixed_waves);
	BPF_SEQ_PRINTF(out, " always_reduce=%u text_weights=%u\n", of->always_reduce,
		       of->text_weights);
	return 0;
}
