"""Sections 4 and 5.5: what no number of a run can show. Tests of the project hold it."""

from comity.reproduction import held_by_tests

blind_spot = held_by_tests(
    "tltcp-obsolete-blind-spot",
    says=(
        "a loss behind a pseudo-retransmission is not detected: Time-lined TCP slows down once, "
        "and TCP twice"
    ),
    source="section 5.5",
    tests=["test/testkit/tests/tltcp_paper.rs: figure_4_the_second_loss_goes_unseen"],
)

mpeg_deadlines = held_by_tests(
    "tltcp-mpeg-deadlines",
    says=(
        "frames that depend on each other share a deadline; B frames are shed first, then P "
        "frames, and I frames never"
    ),
    source="section 4",
    tests=[
        "lab/sim/src/engine/timeline.rs: the_stream_of_the_paper_has_the_deadlines_of_its_table",
        "lab/sim/src/engine/timeline.rs: a_real_mpeg_1_stream_has_the_deadlines_of_the_rule",
        "base/frames/src/selection.rs: "
        "b_frames_are_left_out_first_then_p_frames_and_never_i_frames",
        "lab/sim/tests/tltcp.rs: "
        "with_enough_bandwidth_every_frame_is_in_time_and_with_less_the_last_of_a_group_go_first",
        "lab/sim/tests/tltcp.rs: feedback_leaves_out_b_frames_then_p_frames_and_never_i_frames",
    ],
)
