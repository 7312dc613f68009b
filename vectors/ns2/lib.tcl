# What the scripts of this folder share: options as name=value words, the two eras of TCP defaults, agents.

# Sets the global array `opt` from defaults and the command line; an unknown name ends the script.
proc options {defaults} {
    global opt argv
    array set opt $defaults
    foreach word $argv {
        if {![regexp {^(\w+)=(.*)$} $word -> name value] || ![info exists opt($name)]} {
            puts stderr "cannot use \"$word\"; expected name=value with a name of: [lsort [array names opt]]"
            exit 2
        }
        set opt($name) $value
    }
}

# Keeps the packet headers small; to be called before the simulator is made.
proc only_ip_and_tcp {} {
    remove-all-packet-headers
    add-packet-header IP TCP Flags RTP
}

# modern: what ns-2.35 comes with. 2000: what it came with when the papers were run.
proc tcp_defaults {era} {
    switch -- $era {
        modern {}
        2000 {
            foreach {name value} {
                syn_ false  delay_growth_ false  windowInit_ 1  singledup_ 0  useHeaders_ false
                tcpTick_ 0.1  minrto_ 0  maxrto_ 100000  rtxcur_init_ 6.0  rfc2988_ false
                updated_rttvar_ false  precisionReduce_ false  bugfix_ss_ 0  timerfix_ false
            } { Agent/TCP set $name $value }
        }
        default { puts stderr "era $era; expected modern or 2000"; exit 2 }
    }
}

# A greedy sender of `wire`-byte packets with a window of `window` packets, connected to its sink.
# Returns both agents.
proc connection {sim from to variant wire window} {
    array set class {tahoe TCP reno TCP/Reno newreno TCP/Newreno sack TCP/Sack1 vegas TCP/Vegas}
    set sender [new Agent/$class($variant)]
    set sink [new [expr {$variant eq "sack" ? "Agent/TCPSink/Sack1" : "Agent/TCPSink"}]]
    # packetSize_ leaves the 40 bytes of headers out only where useHeaders_ adds them.
    $sender set packetSize_ [expr {[Agent/TCP set useHeaders_] ? $wire - 40 : $wire}]
    $sender set window_ $window
    $sim attach-agent $from $sender
    $sim attach-agent $to $sink
    $sim connect $sender $sink
    return [list $sender $sink]
}

# A sender of `law`, rap or tfrc, of packets of `wire` bytes, connected to its receiver. Returns the sender.
proc rate_connection {sim from to law wire} {
    if {$law eq "rap"} {
        set sender [new Agent/RAP]
        set sink [new Agent/RAP]
        $sender set packetSize_ $wire
    } else {
        set sender [new Agent/TFRC]
        set sink [new Agent/TFRCSink]
        $sender set packetSize_ [expr {$wire - [Agent/TFRC set headersize_]}]
    }
    $sim attach-agent $from $sender
    $sim attach-agent $to $sink
    $sim connect $sender $sink
    return $sender
}

# A pair of links between two nodes; `there` and `back` are the packets that they hold.
proc pair {sim a b rate delay there back} {
    $sim duplex-link $a $b $rate $delay DropTail
    $sim queue-limit $a $b $there
    $sim queue-limit $b $a $back
}

# Loses the packets from `a` to `b` at these places of their order, with a + between them; `none` loses none.
proc lose {sim a b drops} {
    if {$drops eq "none"} return
    set losses [new ErrorModel/List]
    $losses unit pkt
    $losses drop-target [new Agent/Null]
    $losses droplist [split $drops +]
    $sim lossmodel $losses $a $b
}

# A random stream of its own for each seed and name. ns-2 fills the whole state of its generator with the seed:
# from a small one the first number drawn is close to zero (0.0003 from 1, 0.003 from 10), so that a first
# exponential time would be several times its mean in every run. A large seed has no such pattern.
proc stream {seed name} {
    set state 17
    foreach letter [split "$seed $name" {}] {
        set state [expr {($state * 48271 + [scan $letter %c]) % 2147483647}]
    }
    for {set i 0} {$i < 4} {incr i} { set state [expr {$state * 48271 % 2147483647}] }
    set rng [new RNG]
    $rng seed $state
    return $rng
}
