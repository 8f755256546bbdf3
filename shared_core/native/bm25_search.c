/* The sparse leg: the best rows by BM25. */

#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 4096        /* rows whose scores are summed together */
#define FEW 512            /* postings in a window up to which they are faster reset one by one */
#define DEARER 3           /* looking a row up takes as long as scanning this many postings */
#define LONG_SEARCH 30000  /* postings from which other threads may run meanwhile */

static int best_open(Best *best, Py_ssize_t k)
{
    Py_ssize_t room = 3 * (k < BLOCK ? BLOCK : k);
    double *scores = malloc((size_t)room * sizeof *scores);
    Py_ssize_t *rows = malloc((size_t)room * sizeof *rows);
    *best = (Best){k, 0, room, -INFINITY, scores, rows};
    return scores && rows ? 0 : -1;
}

/* How many of some rows are in a window that begins with them. */
static Py_ssize_t window_of(Py_ssize_t rows)
{
    return rows < WINDOW ? rows : WINDOW;
}

static void best_close(Best *best)
{
    free(best->scores);
    free(best->rows);
}

static INLINED Py_ssize_t reaching(const double *scores, Py_ssize_t n, double bound)
{
    Py_ssize_t found = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        found += scores[i] >= bound;
    return found;
}

/* The k-th best of n > k scores, or a bound that exactly k reach; by bisection, as in nearest.c. */
VECTORISED static double kth_best(const double *scores, Py_ssize_t n, Py_ssize_t k)
{
    double low = scores[0], high = scores[0];
    for (Py_ssize_t i = 1; i < n; i++) {
        low = scores[i] < low ? scores[i] : low;
        high = scores[i] > high ? scores[i] : high;
    }
    if (reaching(scores, n, high) >= k)
        return high;
    for (;;) {
        double middle = low + (high - low) / 2;
        if (!(middle > low && middle < high)) /* or NaN, which would never end */
            return low;
        Py_ssize_t found = reaching(scores, n, middle);
        if (found == k)
            return middle;
        if (found > k)
            low = middle;
        else
            high = middle;
    }
}

/* Drop all but the best k; of equal ones, the last. */
static void best_cut(Best *best)
{
    if (best->size <= best->k)
        return;
    best->cut = kth_best(best->scores, best->size, best->k);
    Py_ssize_t places = best->k, kept = 0;
    for (Py_ssize_t i = 0; i < best->size; i++)
        places -= best->scores[i] > best->cut;
    for (Py_ssize_t i = 0; i < best->size; i++) {
        double score = best->scores[i];
        best->scores[kept] = score;
        best->rows[kept] = best->rows[i];
        kept += score > best->cut || (score == best->cut && places-- > 0);
    }
    best->size = kept;
}

static void best_offer(Best *best, double score, Py_ssize_t row)
{
    if (score <= best->cut)
        return;
    if (best->size == best->room)
        best_cut(best);
    best->scores[best->size] = score;
    best->rows[best->size++] = row;
}

/* The most that a posting of a list adds to a score: the most occurrences in the shortest row. */
static double most_of(const List *list, Norm norm)
{
    double most = list->most, least = list->least;
    return list->size ? list->weight * (most / (most + (least * norm.slope + norm.base))) : 0.0;
}

static void bound_terms(Search *search)
{
    const Words *words = &search->words;
    for (Py_ssize_t term = words->terms - 1; term >= 0; term--) {
        double most = 0.0;
        for (Py_ssize_t segment = 0; segment < words->segments; segment++) {
            double here = most_of(words->lists + segment * words->terms + term, words->norm);
            most = here > most ? here : most;
        }
        search->rest[term] = search->rest[term + 1] + most;
    }
}

/* Find a score that k rows are sure to reach, from the weightiest term that k rows hold. If the
 * other terms add nothing negative, no row with a lower score can be among the best k. The cut is
 * just below it, so that rows that tie with it can. */
static void bound_best(Search *search)
{
    const Words *words = &search->words;
    Best *best = &search->best;
    Py_ssize_t held = 0, found = 0, term = -1;
    while (held < best->k && ++term < words->terms) {
        held = 0;
        for (Py_ssize_t segment = 0; segment < words->segments; segment++)
            held += words->lists[segment * words->terms + term].size;
    }
    for (Py_ssize_t segment = 0; held >= best->k && segment < words->segments; segment++) {
        const List *list = words->lists + segment * words->terms + term;
        for (Py_ssize_t at = 0; at < list->size && found < best->room; at++)
            if (!search->allowed || search->allowed[list->rows[at]])
                best->scores[found++] = posting_score(list, list->wide, at, words->norm);
    }
    if (found > best->k)
        best->cut = nextafter(kth_best(best->scores, found, best->k), -INFINITY);
}

/* How many terms to scan by the present cut: those that are needed, and others while that is
 * cheaper than looking rows up in them. */
static Py_ssize_t terms_to_scan(Search *search, const List *lists)
{
    const Words *words = &search->words;
    while (words->prunes && search->needed > 1 &&
           search->rest[search->needed - 1] * SAFETY <= search->best.cut)
        search->needed--;
    Py_ssize_t term = 0, postings = 0;
    for (; term < search->needed; term++)
        postings += lists[term].size;
    while (term < words->terms && lists[term].size <= DEARER * postings)
        term++;
    return term;
}

/* Rows whose scores are summed together. */
typedef struct {
    int32_t first;
    Py_ssize_t size;
    double *scores;
    double bar;       /* rows with a higher score are marked */
    uint64_t *marked; /* a bit for each */
} Window;

/* Add a list's postings in a window to the scores of its rows, or of `some`: those that exceed
 * `least` without it. Compiled once for each case. */
static INLINED void add_postings(List *list, int wide, int some, double least, Norm norm,
                                 const Window *window)
{
    const int32_t *restrict rows = list->rows;
    double *restrict scores = window->scores, bar = window->bar;
    uint64_t *restrict marked = window->marked;
    int32_t first = window->first;
    Py_ssize_t at = list->at, size = list->size;
    for (; at < size; at++) {
        uint32_t place = (uint32_t)(rows[at] - first);
        if (place >= WINDOW)
            break;
        if (some && scores[place] <= least)
            continue;
        double score = scores[place] + posting_score(list, wide, at, norm);
        scores[place] = score;
        marked[place / 64] |= (uint64_t)(score > bar) << place % 64;
    }
    list->at = at;
}

static void add_to_all(List *list, Norm norm, const Window *window)
{
    list->from = list->at;
    if (list->wide)
        add_postings(list, 1, 0, 0.0, norm, window);
    else
        add_postings(list, 0, 0, 0.0, norm, window);
}

static void add_to_some(List *list, double least, Norm norm, const Window *window)
{
    list->at = seek(list->rows, list->size, list->at, window->first);
    if (list->wide)
        add_postings(list, 1, 1, least, norm, window);
    else
        add_postings(list, 0, 1, least, norm, window);
}

/* Reset the scores that the lists of the needed terms have added to: no others have a score. */
static void clear_window(const List *lists, Py_ssize_t needed, const Window *window)
{
    Py_ssize_t added = 0;
    for (const List *list = lists; list < lists + needed; list++)
        added += list->at - list->from;
    if (added > FEW) {
        memset(window->scores, 0, (size_t)window->size * sizeof *window->scores);
        return;
    }
    for (const List *list = lists; list < lists + needed; list++)
        for (Py_ssize_t at = list->from; at < list->at; at++)
            window->scores[list->rows[at] - window->first] = 0.0;
}

/* Look a row up in the lists of the terms from `term` on, while they can lift it into the best
 * k. */
static void look_up(Search *search, List *lists, Py_ssize_t term, double score, Py_ssize_t row)
{
    const Words *words = &search->words;
    for (; term < words->terms; term++) {
        List *list = lists + term;
        if ((score + search->rest[term]) * SAFETY <= search->best.cut)
            return;
        list->at = seek(list->rows, list->size, list->at, row);
        if (list->at < list->size && list->rows[list->at] == row)
            score += posting_score(list, list->wide, list->at, words->norm);
    }
    best_offer(&search->best, score, row);
}

/* Find the first row of the next window, INT32_MAX after the last. */
static int32_t next_window(const List *lists, Py_ssize_t needed)
{
    int32_t first = INT32_MAX;
    for (const List *list = lists; list < lists + needed; list++)
        if (list->at < list->size && list->rows[list->at] < first)
            first = list->rows[list->at];
    return first;
}

/* Search one segment in windows of rows (like Lucene's BooleanScorer), but go through the lists of
 * terms that are not needed only for rows that these can lift into the best k, and do not scan the
 * longest, but look the rows up there (MaxScore: Turtle and Flood, Information Processing &
 * Management 31(6), 1995). */
static void search_segment(Search *search, List *lists, double *scores)
{
    const Words *words = &search->words;
    Best *best = &search->best;
    uint64_t marked[WINDOW / 64] = {0};
    Window window = {.scores = scores, .marked = marked};
    Py_ssize_t through = 0;
    double cut = NAN;
    for (;;) {
        if (best->size > best->k + best->k / 2)
            best_cut(best);
        if (best->cut != cut) {
            cut = best->cut;
            through = terms_to_scan(search, lists);
            window.bar = through == words->terms ? cut : cut / SAFETY - search->rest[through];
        }
        window.first = next_window(lists, search->needed);
        if (window.first == INT32_MAX)
            return;
        window.size = window_of(words->rows - window.first);
        for (Py_ssize_t term = 0; term < search->needed; term++)
            add_to_all(lists + term, words->norm, &window);
        for (Py_ssize_t term = search->needed; term < through; term++) {
            double least = cut / SAFETY - search->rest[term]; /* 0: it has no needed term */
            add_to_some(lists + term, least > 0.0 ? least : 0.0, words->norm, &window);
        }
        for (int32_t word = 0; word < WINDOW / 64; word++)
            for (; marked[word]; marked[word] &= marked[word] - 1) {
                int32_t place = word * 64 + __builtin_ctzll(marked[word]);
                int32_t row = window.first + place;
                if (!search->allowed || search->allowed[row])
                    look_up(search, lists, through, scores[place], row);
            }
        clear_window(lists, search->needed, &window);
    }
}

void search_close(Search *search)
{
    best_close(&search->best);
    free(search->rest);
    words_close(&search->words);
}

static Py_ssize_t postings_of(const Words *words)
{
    Py_ssize_t postings = 0;
    for (Py_ssize_t i = 0; i < words->segments * words->terms; i++)
        postings += words->lists[i].size;
    return postings;
}

static void search_words(Search *search)
{
    const Words *words = &search->words;
    double scores[WINDOW];
    memset(scores, 0, (size_t)window_of(words->rows) * sizeof *scores);
    bound_terms(search);
    if (words->prunes)
        bound_best(search);
    for (Py_ssize_t segment = 0; segment < words->segments; segment++)
        search_segment(search, words->lists + segment * words->terms, scores);
    best_cut(&search->best);
}

void search_all(Search *searches, Py_ssize_t m)
{
    Py_ssize_t postings = 0;
    for (Py_ssize_t i = 0; i < m; i++)
        postings += postings_of(&searches[i].words);
    PyThreadState *others = postings >= LONG_SEARCH ? PyEval_SaveThread() : NULL;
    for (Py_ssize_t i = 0; i < m; i++)
        search_words(searches + i);
    if (others)
        PyEval_RestoreThread(others);
}

int search_open(Search *search, PyObject *segments, PyObject *query, Norm norm, Py_ssize_t rows,
                Py_ssize_t k)
{
    PyObject *terms, *weights;
    if (!PyTuple_Check(query)) {
        PyErr_SetString(PyExc_TypeError, "a query is a tuple of terms and weights");
        return -1;
    }
    if (!PyArg_ParseTuple(query, "O!O!", &PyList_Type, &terms, &PyList_Type, &weights))
        return -1;
    if (words_open(&search->words, segments, terms, weights, norm, rows) < 0)
        return -1;
    search->needed = search->words.terms;
    search->rest = calloc((size_t)search->words.terms + 1, sizeof *search->rest);
    if (best_open(&search->best, k < rows ? k : rows + 1) == 0 && search->rest)
        return 0;
    PyErr_NoMemory();
    return -1;
}
