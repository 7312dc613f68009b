# Constant-rate senders, `gap` microseconds between the end of a packet and the start of the next, and TCP
# senders into one gateway. With random=1 each interval is drawn from half to one and a half times its
# length. Prints the packets that the gateway passed and dropped, and, sorted, those that each constant-rate
# flow and then each TCP flow got through.
source [file join [file dirname [info script]] lib.tcl]
options {name - cbr 16 tcp 0 gap 1000 window 20 random 1 seconds 20 seed 1}
only_ip_and_tcp
set sim [new Simulator]
set starts [stream $opt(seed) starts]
ns-random $opt(seed)
set gateway [$sim node]
set end [$sim node]
pair $sim $gateway $end 155Mb 40ms 10 100000
set monitor [$sim monitor-queue $gateway $end ""]
set period [expr {$opt(gap) * 1e-6 + 1500 * 8 / 100e6}]
for {set i 0} {$i < $opt(cbr) + $opt(tcp)} {incr i} {
    set from [$sim node]
    pair $sim $from $gateway 100Mb 2ms 100000 100000
    set at [$starts uniform 0 1]
    if {$i < $opt(cbr)} {
        set sender [new Agent/UDP]
        set sink [new Agent/LossMonitor]
        $sender set packetSize_ 1500
        $sim attach-agent $from $sender
        $sim attach-agent $end $sink
        $sim connect $sender $sink
        set traffic [new Application/Traffic/CBR]
        $traffic set packetSize_ 1500
        $traffic set interval_ $period
        $traffic set random_ $opt(random)
        $traffic attach-agent $sender
        $sim at $at "$traffic start"
        lappend datagrams $sink
    } else {
        lassign [connection $sim $from $end reno 1500 $opt(window)] sender sink
        [new Application/FTP] attach-agent $sender
        $sim at $at "$sender send -1"
        lappend streams $sink
    }
}
proc report {} {
    global opt monitor datagrams streams
    set got {}
    foreach sink $datagrams { lappend got [expr {[$sink set bytes_] / 1500}] }
    set row [lsort -integer $got]
    if {$opt(tcp)} {
        set got {}
        foreach sink $streams { lappend got [expr {[$sink set bytes_] / 1500}] }
        set row [concat $row [lsort -integer $got]]
    }
    puts "$opt(name) $opt(seed) [$monitor set pdepartures_] [$monitor set pdrops_] $row"
    exit 0
}
$sim at $opt(seconds) report
$sim run
