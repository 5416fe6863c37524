import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

import com.sun.management.OperatingSystemMXBean;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * One workload on Flink CEP, one slot, in this process: Cep WORKLOAD FILE RUNS. For each run a line: the number of
 * matches, the sum of the times of all their events, and from the start of the job to its end the seconds on the wall and
 * those of CPU time, of all threads.
 *
 * The file has the events that the pattern names, and no others: int count, then for each long ts, int type, long id,
 * double value. Types are numbered in the order of the pattern; 9 is the negated one.
 */
public class Cep {
    public static class Event implements Serializable {
        public long ts;
        public int type;
        public long id;
        public double value;
    }

    static Event[] events;
    static final LongAdder matches = new LongAdder();
    static final LongAdder sum = new LongAdder();

    static class Is extends SimpleCondition<Event> {
        final int type;

        Is(int type) {
            this.type = type;
        }

        @Override
        public boolean filter(Event e) {
            return e.type == type;
        }
    }

    /** Of a type, and with a larger value than the event bound to another name. */
    static class Above extends IterativeCondition<Event> {
        final int type;
        final String other;

        Above(int type, String other) {
            this.type = type;
            this.other = other;
        }

        @Override
        public boolean filter(Event e, Context<Event> context) throws Exception {
            if (e.type != type) {
                return false;
            }
            for (Event before : context.getEventsForPattern(other)) {
                if (!(before.value < e.value)) {
                    return false;
                }
            }
            return true;
        }
    }

    static class Count extends PatternProcessFunction<Event, Long> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> out) {
            matches.increment();
            for (List<Event> bound : match.values()) {
                for (Event e : bound) {
                    sum.add(e.ts);
                }
            }
        }
    }

    static Pattern<Event, ?> pattern(String workload) {
        Pattern<Event, Event> a = Pattern.<Event>begin("a").where(new Is(0));
        switch (workload) {
            case "W3":
                return a.notFollowedBy("x").where(new Is(9)).followedByAny("b").where(new Is(1))
                        .followedByAny("c").where(new Is(2)).within(Duration.ofMillis(101));
            case "W4":
                return a.followedByAny("b").where(new Is(1)).followedByAny("c").where(new Is(2))
                        .followedByAny("d").where(new Is(3)).within(Duration.ofMillis(5000));
            case "W7":
                return a.followedByAny("b").where(new Above(1, "a")).followedByAny("c").where(new Above(2, "b"))
                        .within(Duration.ofMillis(2001));
            default:
                return a.followedByAny("b").where(new Is(1)).followedByAny("c").where(new Is(2))
                        .within(Duration.ofMillis(workload.equals("W1") ? 101 : 2001));
        }
    }

    public static void main(String[] args) throws Exception {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(args[1]), 1 << 20))) {
            events = new Event[in.readInt()];
            for (int i = 0; i < events.length; i++) {
                Event e = new Event();
                e.ts = in.readLong();
                e.type = in.readInt();
                e.id = in.readLong();
                e.value = in.readDouble();
                events[i] = e;
            }
        }
        OperatingSystemMXBean clock = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
        for (int run = 0; run < Integer.parseInt(args[2]); run++) {
            matches.reset();
            sum.reset();
            StreamExecutionEnvironment env = job(args[0]);
            long wall = System.nanoTime();
            long cpu = clock.getProcessCpuTime();
            env.execute();
            System.out.println(matches.sum() + " " + sum.sum() + " " + (System.nanoTime() - wall) / 1e9 + " "
                    + (clock.getProcessCpuTime() - cpu) / 1e9);
        }
    }

    static StreamExecutionEnvironment job(String workload) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(1);
        env.getConfig().enableObjectReuse();
        DataStream<Event> stream = env.fromSequence(0, events.length - 1)
                .map(i -> events[i.intValue()])
                .returns(Event.class)
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Event>forMonotonousTimestamps().withTimestampAssigner((e, before) -> e.ts));
        if (workload.equals("W2") || workload.equals("W7")) {
            stream = stream.keyBy(e -> e.id);
        }
        CEP.pattern(stream, pattern(workload)).process(new Count()).sinkTo(new DiscardingSink<>());
        return env;
    }
}
