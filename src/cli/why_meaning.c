#include "why_meaning.h"

#include <stddef.h>
#include <string.h>

#include "count_of.h"

static const struct {
        const char *id, *text;
} meaning[] = {
        {"clean", "Nothing is wrong: the program ended by itself with status 0, and stayed within "
                  "what it may use."},
        {"leak",
         "The job keeps a little more memory with every step and never gives it back, so that it "
         "fills up sooner or later, however large the machine is. The usual culprits: a loss or "
         "an output kept in a list with its whole graph (keep loss.item(), or detach), a history "
         "that is never cut, a cache without an end, a hook or a figure that is added in every "
         "step. A program that only warms up rises and then stays; that is told apart."},
        {"leak:retained-history",
         "One line makes something in every step, and all of it is still there: a list, a dict, a "
         "cache or an attribute keeps it, and nothing empties that. Look for who keeps what the "
         "named line makes. Keep the last few (deque(maxlen=...), lru_cache(maxsize=...)), keep "
         "numbers instead of arrays and tensors (loss.item()), or write it to disk."},
        {"leak:retained-graph",
         "What is kept from every step is a result together with its graph: all that a backward "
         "pass would need, which is far more than the result itself. Usual ways to it: "
         "losses.append(loss), total += loss, an output or a hidden state that goes on into the "
         "next step, an evaluation that records. Keep loss.item(), x.detach(), and evaluate under "
         "torch.no_grad(); in TensorFlow keep float(loss), and no tape."},
        {"leak:worker-copy",
         "Loader workers begin as copies of their parent and share its memory, until one of them "
         "writes to it. Python counts in every object who uses it, so that merely reading a list "
         "of objects writes to it: piece by piece each worker gets a copy of its own. Let the data "
         "set hold NumPy arrays or tensors (one object, whatever its size) instead of lists or "
         "dicts of Python objects, or use fewer workers."},
        {"leak:fragmentation",
         "The program gives its memory back, but the system does not get it: small blocks that "
         "stay lie between the large ones that were freed, and the heap can only shrink from its "
         "end. malloc's own account shows it as held and not used. Run it with "
         "MALLOC_MMAP_THRESHOLD_=65536 in the environment: larger blocks then lie apart, and go "
         "back each by itself. Calling malloc_trim(0) now and then, another allocator (jemalloc), "
         "or keeping less of what is small helps, too."},
        {"leak:pinned",
         "What grows is host memory that is locked for the GPU (pin_memory): it can be neither "
         "swapped nor moved, and it is kept as long as its tensor is. Pin batches, not the data "
         "set; drop them once they are copied to the GPU; keep nothing that a pinning loader gave "
         "you."},
        {"leak:shm",
         "What grows is shared memory (/dev/shm): it belongs to no process, and stays until the "
         "last one lets go of it. Loader workers hand over their batches there: keep a copy "
         "(.clone()) of what you want to keep, and drop the batch. Of shared memory that the "
         "program makes itself, call close() and unlink()."},
        {"leak:retrace",
         "TensorFlow makes a graph of a tf.function when it is called with something new: another "
         "shape, another type, another Python number. Here that happens in nearly every step: each "
         "new graph is kept, and to make it takes far longer than the step. Hand it tensors "
         "instead "
         "of Python values, make the function once and outside of the loop, and name the shapes "
         "that change (input_signature with None, reduce_retracing=True). The same is said of "
         "tf.Variables that are made in every step and stay: make them once, and assign."},
        {"leak:gpu",
         "What is in GPU memory when the optimizer is called grows with every step: a step's own "
         "needs are gone by then, so that tensors of steps before are kept. Usual ways to it: "
         "losses or outputs in a list, a hidden state that goes on into the next step, a cache "
         "without an end. Keep loss.item() and x.detach().cpu()."},
        {"model-too-large",
         "The model itself does not fit: its weights, their gradients and what the optimizer keeps "
         "fill the memory, or not even one sample at a time goes through. A smaller batch does not "
         "help any more. What helps, with its price: activation checkpointing (a third more time), "
         "an 8-bit optimizer, weights in bf16, a smaller model, or one that is split over several "
         "devices."},
        {"shuffle-buffer",
         "tf.data's shuffle(N) keeps N elements in memory, and cache() all of them. When they "
         "stand "
         "behind map() or batch(), an element is a decoded picture or a whole batch, and that is "
         "much of the job's memory. Shuffle file names or indices first and decode afterwards, "
         "take "
         "a smaller buffer, or cache to a file."},
        {"held-after-use",
         "When training was left (for an evaluation, at the end of a notebook's cell), much memory "
         "stayed taken by tensors that belong neither to the model nor to the optimizer: the last "
         "loss with its graph, outputs in a list, a batch, or an exception whose traceback keeps "
         "all of it. What comes next has that much less. del what is not needed any more; in a "
         "notebook also sys.last_exc, and the variables _ and Out."},
        {"dataset-in-memory",
         "Most of the job's memory are data that it loaded as a whole before it began to work, and "
         "keeps. It does not grow, but it leaves little room, and the next larger data set will "
         "not fit. Keep the data on disk and read what a batch needs when it is needed: a Dataset "
         "that reads in __getitem__, np.memmap, tf.data from files. Often there are two copies "
         "(an array and the tensor made of it), or numbers are wider than they need be: NumPy "
         "makes float64, models take float32, which is half of it."},
        {"batch-too-large",
         "The memory comes and goes with each step: what a step needs for its batch (samples, "
         "activations, gradients) is too much for what the job may use. Take a smaller batch, and "
         "add up the gradients of several before the optimizer's step (gradient accumulation): "
         "that learns the same. The advice tells which part of the batch fits; where --policy "
         "adapt "
         "has made steps in parts, the parts that went through. Activation checkpointing and mixed "
         "precision make steps smaller, too."},
        {"layer-buffer",
         "Layers of the model hold large buffers that are not learned: masks, tables, random "
         "matrices that each layer makes for itself. They are there from the start and stay as "
         "they are, so this is no leak; but where memory is short, they can be shared between "
         "layers, computed when they are needed, or kept smaller."},
        {"fd-leak",
         "The job opens files, sockets or pipes and does not close them. When it meets its limit "
         "of open files (ulimit -n), nothing can be opened any more, not even a checkpoint. Use "
         "`with open(...)`, and close loaders, writers and memory maps when an epoch is done."},
        {"thread-leak",
         "The job starts threads that never end: each takes memory and time of the scheduler. "
         "Often a pool, a loader or a logger that is made anew in every epoch: make it once."},
        {"log-growth",
         "What the job writes grows without end, and so fast that a disk or the memory behind it "
         "will be full. Log less often, write summaries instead of tensors, keep the last few "
         "checkpoints only."},
        {"disk-full",
         "A disk that the job writes to is full, or nearly. Old checkpoints, logs and caches are "
         "the usual cause."},
        {"shm-full",
         "/dev/shm is full, or nearly. Loader workers hand over their batches there: fewer "
         "workers, a smaller prefetch, or a larger /dev/shm (in a container: --shm-size) helps."},
        {"gpu-oom",
         "The GPU's own memory was used up. A smaller batch with gradient accumulation, mixed "
         "precision, activation checkpointing, or a smaller model lets it fit; empty_cache() does "
         "not, as long as the tensors are still held. A program that catches the error and goes on "
         "hears of it, too: what was to be learned in these steps was not."},
        {"gpu-held-by-other",
         "Most of the GPU's memory belongs to another program: perhaps a run of yours that did not "
         "end, a notebook that is still open, or somebody else's job. nvidia-smi names it."},
        {"gpu-preallocated",
         "The framework took nearly all of the GPU's memory at the start, whether it needs it or "
         "not, so the figure says nothing about the model. TensorFlow: set_memory_growth; JAX: "
         "XLA_PYTHON_CLIENT_PREALLOCATE=false."},
        {"gpu-spill",
         "The GPU's memory was full and the driver moved a part of it into the machine's RAM, "
         "which is many times slower. It looks like a slow program. A smaller batch stays within "
         "the GPU."},
        {"driver-fault",
         "The GPU's driver or the card itself reported a fault (an Xid in the kernel's log, a GPU "
         "that fell off the bus or does not answer). Restart the program, then the machine; if it "
         "comes back, look at power, cooling and the driver's version."},
        {"overheat",
         "A part of the machine became so hot that it slowed itself down. The program is not at "
         "fault: free the air's way, clean the fans, or limit the power (nvidia-smi -pl)."},
        {"power-limit",
         "The GPU ran at its limit of power for most of the time, so its clock was held down. This "
         "is no fault; it is the reason why it is not faster."},
        {"hang",
         "The job lives but does nothing that moves it on. Which kind it is: hang:deadlock, "
         "hang:spin, hang:worker-dead."},
        {"hang:deadlock",
         "Everything in the job waits for something else in the job, and nothing will ever come: "
         "two locks taken in different order, a queue that nobody fills, a fork while another "
         "thread held a lock. While it hangs, `py-spy dump --pid` or "
         "gdb shows who waits where."},
        {"hang:spin",
         "The job burns a core without getting anywhere: a loop whose condition never comes true. "
         "While it turns, `py-spy dump --pid` or gdb shows where."},
        {"hang:worker-dead",
         "A worker of the job died, and the others wait for it for ever. Look for why it died (it "
         "was killed for memory, or raised an exception nobody read) and give the loader a "
         "timeout."},
        {"data-stall",
         "The job waits for its data more than it computes: the disk, the network or the decoding "
         "is too slow. More workers, larger reads, a local copy, or a format that decodes faster "
         "helps; a faster GPU does not."},
        {"accumulation-broken",
         "Gradients of several batches are to be added up before the optimizer makes a step, but "
         "zero_grad() is called for each batch: what was computed is thrown away, and only the "
         "last "
         "batch before each step is learned from. Call it once for each step, after "
         "optimizer.step(), and divide the loss by the number of batches."},
        {"cpu-oversubscription",
         "Far more threads want to run than there are cores, so they get in each other's way. "
         "Loader workers times threads each is the usual product: set OMP_NUM_THREADS, "
         "torch.set_num_threads or num_workers so that it is about the number of cores."},
        {"swap-thrash",
         "The machine spent its time moving memory to the swap and back instead of working: what "
         "was in use did not fit into the RAM. Everything becomes slow long before anything "
         "fails. The job has to need less at a time."},
        {"swap-insufficient",
         "Swap was nearly used up (or there is none), so the machine has no room left for a peak. "
         "More swap gives time to react; it does not make a job fit that needs more than the RAM "
         "all the time."},
        {"host-exhaustion",
         "The job needed as much memory as the machine can give it, so Antifreeze slowed it down, "
         "asked it to save, and in the end stopped it, before the machine would have begun to "
         "page. A smaller batch, data that is streamed instead of loaded, or a larger --budget "
         "(where others can spare it) lets it run."},
        {"fork-storm",
         "The job started processes without end, and was stopped at the limit of processes. Often "
         "a worker imports the main module and starts workers of its own."},
        {"oom-killed",
         "The kernel killed the job for memory: at the limit that Antifreeze had set (memory was "
         "taken faster than one could look), at that of a container or a batch system around it, "
         "or because the whole machine had nothing left. The evidence says which. The ways out "
         "are those of host-exhaustion."},
        {"killed-externally",
         "Somebody else ended the job with a signal: a user, a batch system, a shell that was "
         "closed. Antifreeze did not, and no limit of ours was met."},
        {"checkpoint-signal",
         "The signal that should make the program save (--checkpoint-signal) ended it: it does not "
         "handle that signal. Install a handler for it, or use --checkpoint-cmd."},
        {"crash",
         "The program was ended by a signal that a fault raises (SIGSEGV, SIGBUS, SIGABRT, ...): a "
         "fault in native code, not a lack of memory that we saw."},
        {"exception",
         "The program ended by itself with a status other than 0: an uncaught exception, a failed "
         "assertion, a usage error. Its own last lines say more."},
        {"lost", "The guard itself was killed before the job ended, so nobody saw the end. The "
                 "kernel's limits stayed in force; the next run clears up. What was recorded until "
                 "then is told."},
        {"machine-lost",
         "The machine went down while the job was running: it was booted anew since, and no end "
         "was recorded. Power, heat, a driver or a reset; the log of the boot before may tell "
         "(journalctl -b -1 -e)."},
        {"not-known",
         "The job ended, but only its parent learns how, and that is not us: so it is with a job "
         "that was attached to (antifreeze attach)."},
};

const char *afz_why_meaning(const char *id)
{
        size_t kind = strcspn(id, ":");
        const char *of_kind = NULL;
        for (size_t i = 0; i < AFZ_COUNT_OF(meaning); i++) {
                if (strcmp(id, meaning[i].id) == 0)
                        return meaning[i].text;
                if (strlen(meaning[i].id) == kind && strncmp(id, meaning[i].id, kind) == 0)
                        of_kind = meaning[i].text;
        }
        return of_kind;
}

const char *afz_why_meaning_id(unsigned i)
{
        return i < AFZ_COUNT_OF(meaning) ? meaning[i].id : NULL;
}
