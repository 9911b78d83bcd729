"""One thread predicts while another learns new classes and features."""

import sys
import threading

import numpy as np

from kesler import OnlineClassifier


def test_predictions_while_another_thread_learns():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(3000, 8))
    model = OnlineClassifier("hybrid", "product-mean", update="pa1").partial_fit(X[:1], [0])
    alone = OnlineClassifier("hybrid", "product-mean", update="pa1").partial_fit(X[:1], [0])
    errors: list[BaseException] = []
    stop = threading.Event()

    def predict() -> None:
        try:
            while not stop.is_set():
                model.predict(X[:50])
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(1, 3000):
        model.learn_one(X[i], i // 5)
    stop.set()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert not errors
    for i in range(1, 3000):
        alone.learn_one(X[i], i // 5)
    np.testing.assert_array_equal(model.decision_function(X[:5]), alone.decision_function(X[:5]))
