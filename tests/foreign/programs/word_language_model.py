"""In the manner of pytorch/examples' word_language_model: batches are slices of one tensor, and the weights are updated
by hand, without an optimizer."""

import torch
import torch.nn as nn

ntokens, bptt, batch_size, clip, lr = 50, 10, 8, 0.25, 2.0


class RNNModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(ntokens, 16)
        self.rnn = nn.LSTM(16, 16)
        self.decoder = nn.Linear(16, ntokens)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        return nn.functional.log_softmax(self.decoder(self.drop(output)).view(-1, ntokens), dim=1), hidden


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def get_batch(source, i):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


torch.manual_seed(3)
train_data = batchify(torch.randint(0, ntokens, (8 * 600,)), batch_size)
model, criterion = RNNModel(), nn.NLLLoss()
steps = 0
for _ in range(2):
    model.train()
    hidden = (torch.zeros(1, batch_size, 16), torch.zeros(1, batch_size, 16))
    for i in range(0, train_data.size(0) - 1, bptt):
        data, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = tuple(h.detach() for h in hidden)
        output, hidden = model(data, hidden)
        criterion(output, targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        steps += 1
print("steps", steps)
