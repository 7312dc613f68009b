# What both ns-2 sides of the race share: options, lean packets, agents, and the closing line.
#
# Options are given as name=value words. Every script prints exactly one line to standard output, the
# words `name=value` that `race.py` reads:
#   mean_goodput_bps  mean over the flows of in-order wire bytes delivered * 8 / simulated seconds
#   packet_hops       packets carried, summed over all links

# Reads name=value words into the array `option`, whose names must already be there.
proc read_options {words} {
    global option
    foreach word $words {
        if {![regexp {^([a-z]+)=(.+)$} $word -> name value] || ![info exists option($name)]} {
            puts stderr "unknown option '$word'; known: [lsort [array names option]]"
            exit 2
        }
        set option($name) $value
    }
}

# A simulator whose packets carry only the headers that are looked at: ns-2 otherwise gives each packet
# every header of every protocol it knows, and clears them all.
proc lean_simulator {scheduler headers} {
    remove-all-packet-headers
    foreach header $headers { add-packet-header $header }
    set sim [new Simulator]
    $sim use-scheduler $scheduler
    return $sim
}

# A Reno sender at `source` that always has data, and its sink at `target`; `wire` is the size of a full
# segment on the wire, 40 bytes of headers included.
proc reno_flow {sim source target wire window start} {
    set sender [new Agent/TCP/Reno]
    $sender set packetSize_ [expr {$wire - [Agent/TCP set tcpip_base_hdr_size_]}]
    $sender set window_ $window
    set sink [new Agent/TCPSink]
    $sim attach-agent $source $sender
    $sim attach-agent $target $sink
    $sim connect $sender $sink
    set file [new Application/FTP]
    $file attach-agent $sender
    $sim at $start "$file start"
    return [list $sender $sink]
}

# Queue monitors on every link, for `count=exact`: the race itself counts from the agents' own counters,
# which cost ns-2 nothing.
proc watch_all_links {sim} {
    global monitors
    set monitors {}
    foreach pair [$sim array names link_] {
        lassign [split $pair :] from to
        lappend monitors [$sim monitor-queue [$sim get-node-by-id $from] [$sim get-node-by-id $to] ""]
    }
}

proc monitored_hops {} {
    global monitors
    set hops 0
    foreach monitor $monitors { incr hops [expr {int([$monitor set pdepartures_])}] }
    return $hops
}

proc closing_line {goodputs hops} {
    set total 0.0
    foreach goodput $goodputs { set total [expr {$total + $goodput}] }
    puts "mean_goodput_bps=[format %.3f [expr {$total / [llength $goodputs]}]] packet_hops=[format %.0f $hops]"
}
