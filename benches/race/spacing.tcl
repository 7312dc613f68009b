# Constant-rate senders beside TCP on the network of the packet-spacing paper:
#
#   source --100 Mb/s, 2 ms-- gateway --155 Mb/s, 40 ms, drop-tail 10-- target
#
# A constant-rate sender leaves a gap after the end of each packet, so its period is the gap plus the
# transmission time. The settings are those of spacing.toml beside this file.
source [file join [file dirname [info script]] common.tcl]
array set option {senders 16 tcp 16 seconds 500 gap 1000 window 20 scheduler Heap seed 1 count fast}
read_options $argv

set wire 1500
set period [expr {$option(gap) * 1e-6 + $wire * 8 / 100e6}]
set sim [lean_simulator $option(scheduler) {IP TCP Flags RTP}]
set random [new RNG]
$random seed $option(seed)
set gateway [$sim node]
set target [$sim node]
$sim duplex-link $gateway $target 155Mb 40ms DropTail
$sim queue-limit $gateway $target 10
$sim queue-limit $target $gateway 100000
proc source_node {} {
    global sim gateway
    set source [$sim node]
    $sim duplex-link $source $gateway 100Mb 2ms DropTail
    $sim queue-limit $source $gateway 100000
    $sim queue-limit $gateway $source 100000
    return $source
}
set constant {}
for {set flow 0} {$flow < $option(senders)} {incr flow} {
    set source [source_node]
    set sender [new Agent/UDP]
    $sender set packetSize_ $wire
    set receiver [new Agent/LossMonitor]
    $sim attach-agent $source $sender
    $sim attach-agent $target $receiver
    $sim connect $sender $receiver
    set traffic [new Application/Traffic/CBR]
    $traffic set packetSize_ $wire
    $traffic set rate_ [expr {$wire * 8 / $period}]
    $traffic set random_ 0
    $traffic attach-agent $sender
    set start [$random uniform 0 1]
    $sim at $start "$traffic start"
    lappend constant [list $receiver $start]
}
set reno {}
for {set flow 0} {$flow < $option(tcp)} {incr flow} {
    lappend reno [reno_flow $sim [source_node] $target $wire $option(window) [$random uniform 0 1]]
}
if {$option(count) eq "exact"} { watch_all_links $sim }

# A constant-rate sender sends once per period from its start on; the bottleneck carries what arrives.
# A TCP segment crosses its access link, then, if acknowledged, the bottleneck, and its acknowledgement
# two links back.
proc finish {} {
    global constant reno option period
    set goodputs {}
    set hops 0
    foreach flow $constant {
        lassign $flow receiver start
        lappend goodputs [expr {[$receiver set bytes_] * 8.0 / $option(seconds)}]
        set sent [expr {int(($option(seconds) - $start) / $period) + 1}]
        incr hops [expr {$sent + int([$receiver set npkts_])}]
    }
    foreach flow $reno {
        lassign $flow sender sink
        lappend goodputs [expr {[$sink set bytes_] * 8.0 / $option(seconds)}]
        incr hops [expr {[$sender set ndatapack_] + 3 * [$sender set nackpack_]}]
    }
    if {$option(count) eq "exact"} { set hops [monitored_hops] }
    closing_line $goodputs $hops
    exit 0
}
$sim at $option(seconds) finish
$sim run
